//! The files that a run touched: what two checkpoints of its directory say that is not the same.

use std::time::{Duration, Instant};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{FilesTouched, RunCheckpoint, SkippedPaths as RecordedSkips, TouchedFile};
use rekindle_store::blobs::Pins;
use rekindle_workspace::Captured;
use rekindle_workspace::compare::count_lines;
use rekindle_workspace::restore::SkippedPaths;

use super::StopFlag;
use crate::workspaces::checkpoint_record::{file_change, from_record};
use crate::workspaces::{WorkspaceError, Workspaces};

/// Files that are told in a record; the others are in an object.
const MAX_TOLD: usize = 200;

/// Bytes of their paths, likewise: a record stays small whatever the paths are.
const MAX_TOLD_BYTES: usize = 32 << 10;

/// How long lines are counted: whoever changed thousands of files wants to know which, and may ask for the lines.
const COUNTED_WITHIN: Duration = Duration::from_secs(5);

/// What a run's directory was at its start.
pub(super) struct Start {
    tree: BlobId,
    rules: Option<BlobId>,
    skipped: RecordedSkips,
}

impl Start {
    /// Returns what a checkpoint says; nothing if it was not taken.
    pub(super) fn of(record: &RunCheckpoint) -> Option<Start> {
        let skipped = record.skipped.as_deref().cloned().unwrap_or_default();
        Some(Start { tree: record.tree?, rules: record.rules, skipped })
    }
}

/// Compares a directory with what it was. What either capture skipped is not looked at: nobody knows what became of it.
pub(super) fn files_touched(
    workspaces: &Workspaces,
    start: &Start,
    now: &Captured,
    stop: &StopFlag,
) -> Result<(FilesTouched, Option<Pins>), WorkspaceError> {
    let source = workspaces.source();
    let unread = |source| WorkspaceError::Io { path: "(skipped paths)".into(), source };
    let skipped_then = SkippedPaths::of(&from_record(&start.skipped), source).map_err(unread)?;
    let skipped_now = SkippedPaths::of(&now.skipped, source).map_err(unread)?;
    let mut touched = FilesTouched {
        rules_differ: start.rules.is_some_and(|rules| rules != now.rules),
        ..FilesTouched::default()
    };
    let (mut list, mut told_bytes) = (Vec::new(), 0);
    let begin = Instant::now();
    for changed in workspaces.compare(start.tree, now.tree) {
        let changed = changed?;
        let path = changed.path.as_slice();
        if changed.is_directory() || skipped_then.covers(path) || skipped_now.covers(path) {
            continue;
        }
        let counts = begin.elapsed() < COUNTED_WITHIN && !stop.is_raised();
        let lines = if counts { count_lines(source, &changed).ok().flatten() } else { None };
        match lines {
            Some(lines) => {
                touched.lines_added += lines.added;
                touched.lines_removed += lines.removed;
            }
            None => touched.uncounted += 1,
        }
        let file = TouchedFile {
            path: path.into(),
            change: file_change(changed.change),
            lines_added: lines.map(|lines| lines.added),
            lines_removed: lines.map(|lines| lines.removed),
        };
        serde_json::to_writer(&mut list, &file).expect("plain text becomes JSON");
        list.push(b'\n');
        touched.total += 1;
        told_bytes += path.len();
        if touched.first.len() < MAX_TOLD && told_bytes <= MAX_TOLD_BYTES {
            touched.first.push(file);
        }
    }
    if touched.total == touched.first.len() as u64 {
        return Ok((touched, None));
    }
    let (all, pins) = workspaces.put_pinned(&list)?;
    touched.all = Some(all);
    Ok((touched, Some(pins)))
}
