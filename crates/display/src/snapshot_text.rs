//! Kept snapshots of a session: a table of them, and what the session was when one was taken.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::Failure;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, PLAIN, grouped, plural, styled, table};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{SnapshotDetail, SnapshotView};
use rekindle_workspace::tree::short_name;

use crate::hints::brief;
use crate::record_text::word;

/// Writes a heading, and a line for each snapshot.
pub fn write_snapshots(out: &mut dyn Write, snapshots: &[SnapshotView]) -> Result<(), Failure> {
    let now = SystemClock.now();
    let row = |one: &SnapshotView| {
        let (style, why) = match (&one.problem, &one.reason) {
            (Some(problem), _) => (BAD, problem.code.replace('_', " ")),
            (None, reason) => (PLAIN, reason.as_ref().map(word).unwrap_or_default()),
        };
        vec![
            (BOLD, one.name.clone()),
            (style, why),
            (PLAIN, output::size(one.size_bytes)),
            (DIM, output::ago(one.created_at, now)),
            (DIM, one.tree.as_ref().map(short_name).unwrap_or_default()),
        ]
    };
    if snapshots.is_empty() {
        return Ok(());
    }
    let heading = output::heading(&["SNAPSHOT", "WHY", "SIZE", "TAKEN", "FILES"]);
    let rows: Vec<_> = [heading].into_iter().chain(snapshots.iter().map(row)).collect();
    for line in table(&rows).0 {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes what a session was when a snapshot was taken.
pub fn write_snapshot(out: &mut dyn Write, detail: &SnapshotDetail) -> Result<(), Failure> {
    let now = SystemClock.now();
    let SnapshotDetail { name, session_id, seq, .. } = detail;
    let facts = format!(
        "{}, taken {} ({}), {}",
        brief(session_id),
        output::when(detail.created_at, now),
        word(&detail.reason),
        output::size(detail.size_bytes)
    );
    writeln!(out, "{}  {}", styled(BOLD, name), styled(DIM, facts))?;
    let run = detail.run.as_ref().map(|run| format!("{} {}", run.run_id, run.state));
    let usage = &detail.usage;
    let tokens =
        format!("{} tokens read, {} written", grouped(usage.input_tokens), grouped(usage.output_tokens));
    let rows = [
        ("title", Some(detail.title.clone()).filter(|title| !title.is_empty())),
        ("directory", Some(detail.working_dir.clone())),
        ("agent", Some(detail.agent.clone())),
        ("model", detail.model.clone()),
        ("mode", detail.mode.clone()),
        ("its session", detail.cursor.clone()),
        ("run", run),
        ("waits", (detail.waits > 0).then(|| detail.waits.to_string())),
        ("queued", (detail.queued > 0).then(|| plural(detail.queued as u64, "prompt"))),
        ("usage", Some(tokens)),
        ("history", Some(format!("records 1 to {seq} of the log"))),
        ("files", detail.tree.as_ref().map(short_name)),
    ];
    for (what, value) in rows {
        if let Some(value) = value {
            writeln!(out, "  {}  {}", styled(DIM, format!("{what:<11}")), sanitise::line(&value))?;
        }
    }
    Ok(())
}
