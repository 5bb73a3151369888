//! A power cut: everybody is dead, and of each file what was surely not synced may be gone. What an append asked to have on
//! disk is there; what agents said within the last moments need not be, in the write-ahead log, in journals, or in logs that
//! the write-ahead log completes.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use rekindle_domain::line::Line;
use rekindle_domain::time::Timestamp;
use rekindle_seeded::Rng;

use super::ledger::is_fleeting;

/// What was written earlier than this may have been synced: everything is within a second.
const FRESH_MS: u64 = 700;

/// A record within a file.
struct Found<'a> {
    at: usize,
    line: Line<'a>,
}

/// Cuts what was written since just before a moment.
pub(super) fn cut(home: &Path, moment: Timestamp, rng: &mut Rng) -> std::io::Result<()> {
    // What caches know beyond the cut, they would not have had on disk either.
    for path in files(&home.join("sessions"))? {
        if path.extension().is_some_and(|end| end == "json") {
            std::fs::remove_file(path)?;
        }
    }
    for holder in std::fs::read_dir(home.join("holders")).into_iter().flatten().flatten() {
        if let Some(newest) = files(&holder.path().join("journal")).unwrap_or_default().pop() {
            shorten(&newest, rng, unsynced_journal)?;
        }
    }
    let Some(segment) = files(&home.join("wal"))?.pop() else { return Ok(()) };
    let wal = std::fs::read(&segment)?;
    for log in files(&home.join("sessions"))? {
        shorten(&log, rng, |bytes| completed_by(written(&wal), bytes))?;
    }
    let fresh = |line: &Line<'_>| moment.millis_since(line.time()) < FRESH_MS;
    shorten(&segment, rng, |bytes| unsynced_records(bytes, fresh))
}

/// Lists the files of a directory in the order of their names.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Cuts a file at one of the places where it may be cut, or leaves it whole.
fn shorten(path: &Path, rng: &mut Rng, places: impl Fn(&[u8]) -> Vec<usize>) -> std::io::Result<()> {
    let bytes = std::fs::read(path)?;
    let places = places(written(&bytes));
    match places.get(rng.index(places.len() + 1)) {
        Some(at) => OpenOptions::new().write(true).open(path)?.set_len(*at as u64),
        None => Ok(()),
    }
}

/// Returns a file's bytes without the room that was only reserved.
fn written(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

/// Finds the records in a file, whatever is between them.
fn records(bytes: &[u8]) -> Vec<Found<'_>> {
    const BEGIN: &[u8] = b"{\"seq\":";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = position(&bytes[at..], BEGIN) {
        at += next;
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |len| at + len);
        match Line::parse(&bytes[at..end]) {
            Ok(line) => {
                found.push(Found { at, line });
                at = end;
            }
            Err(_) => at += 1,
        }
    }
    found
}

fn position(bytes: &[u8], words: &[u8]) -> Option<usize> {
    bytes.windows(words.len()).position(|window| window == words)
}

/// Where the write-ahead log may end: before any of the fleeting records behind the last one that was synced.
fn unsynced_records(bytes: &[u8], fresh: impl Fn(&Line<'_>) -> bool) -> Vec<usize> {
    let found = records(bytes);
    let durable = |found: &Found<'_>| !is_fleeting(found.line.kind) || !fresh(&found.line);
    let after = found.iter().rposition(durable).map_or(0, |last| last + 1);
    // What was appended together was synced together.
    let after = (after..found.len()).find(|at| *at == 0 || !found[*at - 1].line.more).unwrap_or(found.len());
    let begins = |at: &usize| *at == 0 || !found[*at - 1].line.more;
    (after..found.len()).filter(begins).map(|at| found[at].at).collect()
}

/// Where a log may end: before any of the records at its end that the write-ahead log has too.
fn completed_by(wal: &[u8], log: &[u8]) -> Vec<usize> {
    let found = records(log);
    let there = |found: &&Found<'_>| position(wal, found.line.text.as_bytes()).is_some();
    found.iter().rev().take_while(there).map(|found| found.at).collect()
}

/// Where a journal may end: before any of the agent's words behind the last thing that it was told.
fn unsynced_journal(bytes: &[u8]) -> Vec<usize> {
    const TOLD: [&[u8]; 6] = [
        b"session/prompt",
        b"session/new",
        b"session/load",
        b"session/cancel",
        b"initialize",
        b"\"outcome\"",
    ];
    let last = |words: &[u8]| bytes.windows(words.len()).rposition(|window| window == words);
    let told = TOLD.iter().filter_map(|words| last(words)).max().unwrap_or(bytes.len());
    let mut places = Vec::new();
    let mut at = told;
    while let Some(next) = bytes.get(at..).and_then(|rest| position(rest, b"agent_message_chunk")) {
        at += next;
        places.push(at);
        at += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, kind: &str, more: bool) -> String {
        let more = if more { ",\"more\":true" } else { "" };
        format!(
            "{{\"seq\":{seq},\"ts\":\"2026-01-01T00:00:00.000Z\",\"kind\":\"{kind}\"{more},\"h\":\"0123456789abcdef\"}}\n"
        )
    }

    #[test]
    fn only_what_was_never_synced_is_lost() {
        let wal = format!(
            "head{}frame{}{}frame{}frame{}tail",
            line(1, "message.agent", false),
            line(2, "run.waiting", true),
            line(3, "tool.call", false),
            line(4, "message.agent", false),
            line(5, "tool.update", false),
        );
        let at = |seq: u64| wal.find(&format!("{{\"seq\":{seq},")).expect("a record");
        assert_eq!(
            unsynced_records(wal.as_bytes(), |_| true),
            [at(4), at(5)],
            "one append is synced as a whole"
        );
        assert_eq!(unsynced_records(wal.as_bytes(), |_| false), [0; 0], "what is old was synced");
        let log = format!("{}{}", line(1, "session.created", false), line(4, "message.agent", false));
        assert_eq!(completed_by(wal.as_bytes(), log.as_bytes()), [line(1, "session.created", false).len()]);
        let journal =
            b"initialize agent_message_chunk session/prompt agent_message_chunk agent_message_chunk";
        assert_eq!(unsynced_journal(journal).len(), 2);
    }
}
