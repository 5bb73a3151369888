//! The files that a run touched, and those that were changed between two runs: what two checkpoints of a directory say that is
//! not the same.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    ChangedFile, ChangedFiles, FilesTouched, RunCheckpoint, SkippedPaths as RecordedSkips, TouchedFile,
};
use rekindle_store::blobs::Pins;
use rekindle_workspace::Captured;
use rekindle_workspace::compare::{Change, Changed, count_lines};
use rekindle_workspace::restore::SkippedPaths;

use super::StopFlag;
use crate::drive::capped_list::CappedList;
use crate::workspaces::checkpoint_record::{file_change, from_record};
use crate::workspaces::{WorkspaceError, Workspaces};

/// How long lines are counted: whoever changed thousands of files wants to know which, and may ask for the lines.
const COUNTED_WITHIN: Duration = Duration::from_secs(5);

/// What a directory was at an earlier checkpoint.
pub(super) struct Before {
    tree: BlobId,
    rules: Option<BlobId>,
    skipped: RecordedSkips,
}

impl Before {
    /// Returns what a checkpoint says; nothing if it was not taken.
    pub(super) fn of(record: &RunCheckpoint) -> Option<Before> {
        let skipped = record.skipped.as_deref().cloned().unwrap_or_default();
        Some(Before { tree: record.tree?, rules: record.rules, skipped })
    }

    fn rules_differ(&self, now: &Captured) -> bool {
        self.rules.is_some_and(|rules| rules != now.rules)
    }
}

/// Compares a directory with what it was: files alone. What either capture skipped is not looked at: nobody knows what became of it.
/// What counts no longer and is still there was not deleted: git tracks it no more, or there is no repository around it here.
fn changes<'a>(
    workspaces: &'a Workspaces,
    before: &Before,
    now: &Captured,
    root: &Path,
) -> Result<impl Iterator<Item = Result<Changed, WorkspaceError>> + use<'a>, WorkspaceError> {
    let source = workspaces.source();
    let unread = |source| WorkspaceError::Io { path: "(skipped paths)".into(), source };
    let skipped_then = SkippedPaths::of(&from_record(&before.skipped), source).map_err(unread)?;
    let skipped_now = SkippedPaths::of(&now.skipped, source).map_err(unread)?;
    let root = root.to_owned();
    let is_there = move |path: &[u8]| root.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
    let counts = move |changed: &Changed| {
        let path = changed.path.as_slice();
        let is_looked_at = !changed.is_directory() && !skipped_then.covers(path) && !skipped_now.covers(path);
        is_looked_at && !(changed.change == Change::Deleted && is_there(path))
    };
    let compared = workspaces.compare(before.tree, now.tree);
    Ok(compared.map(|changed| changed.map_err(Into::into)).filter(move |changed| match changed {
        Ok(changed) => counts(changed),
        Err(_) => true,
    }))
}

/// Tells which files were changed since an earlier checkpoint; nothing if nobody wants to know any more.
pub(super) fn files_changed(
    workspaces: &Workspaces,
    before: &Before,
    (now, root): (&Captured, &Path),
    stop: &StopFlag,
) -> Result<Option<ChangedFiles>, WorkspaceError> {
    let mut found = ChangedFiles { rules_differ: before.rules_differ(now), ..ChangedFiles::default() };
    let mut told = CappedList::default();
    for changed in changes(workspaces, before, now, root)? {
        if stop.is_raised() {
            return Ok(None);
        }
        let changed = changed?;
        found.total += 1;
        let (path, change) = (changed.path.as_slice().into(), file_change(changed.change));
        told.push(changed.path.len(), ChangedFile { path, change });
    }
    found.first = told.first;
    Ok(Some(found))
}

/// Tells which files a run touched, and how many lines of them.
pub(super) fn files_touched(
    workspaces: &Workspaces,
    start: &Before,
    (now, root): (&Captured, &Path),
    stop: &StopFlag,
) -> Result<(FilesTouched, Option<Pins>), WorkspaceError> {
    let source = workspaces.source();
    let mut touched = FilesTouched { rules_differ: start.rules_differ(now), ..FilesTouched::default() };
    let (mut list, mut told) = (Vec::new(), CappedList::default());
    let begin = Instant::now();
    for changed in changes(workspaces, start, now, root)? {
        let changed = changed?;
        let path = changed.path.as_slice();
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
        told.push(path.len(), file);
    }
    touched.first = told.first;
    if touched.total == touched.first.len() as u64 {
        return Ok((touched, None));
    }
    let (all, pins) = workspaces.put_pinned(&list)?;
    touched.all = Some(all);
    Ok((touched, Some(pins)))
}
