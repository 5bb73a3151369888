//! The newest records of a home, read from its logs: what must still be there after any strike.

use std::path::{Path, PathBuf};

use rekindle_domain::line::Line;

use super::ledger::is_fleeting;
use super::oracle::place;

/// Returns the newest record of each log that has to be on disk: session, number, hash.
pub(super) fn newest_records(home: &Path) -> Vec<(String, u64, String)> {
    let entries = std::fs::read_dir(home.join("sessions")).into_iter().flatten().flatten();
    let newest = |path: PathBuf| {
        let session = path.file_name()?.to_str()?.strip_suffix(".messages.jsonl")?.to_owned();
        let log = std::fs::read_to_string(&path).ok()?;
        let whole = &log[..log.rfind('\n')? + 1];
        let durable = |line: &&str| {
            let line = Line::parse(line.as_bytes());
            line.is_ok_and(|line| !is_fleeting(line.kind) && !line.more)
        };
        let (seq, hash) = place(whole.lines().rev().find(durable)?)?;
        Some((session, seq, hash))
    };
    entries.filter_map(|entry| newest(entry.path())).collect()
}
