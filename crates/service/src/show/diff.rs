//! What a run did to its directory: its two checkpoints, found in the log, and compared.

use std::io;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{CheckpointAt, CheckpointHow, Event, RunCheckpoint, TouchedFile};
use rekindle_domain::id::RunId;
use rekindle_store::log::LogReader;
use rekindle_wire::code::Code;
use rekindle_wire::view::{FileDiff, RunDiff};
use rekindle_workspace::Changed;
use rekindle_workspace::compare::{count_lines, write_unified};
use rekindle_workspace::restore::SkippedPaths;

use crate::error::{Result, ServiceError};
use crate::log_search::{find_last, for_each_line};
use crate::workspaces::checkpoint_record::{file_change, from_record};
use crate::workspaces::{WorkspaceError, Workspaces};

/// Files that are told at once: more than anybody reads.
const MAX_FILES: usize = 2_000;

/// Bytes of diffs that are told at once.
const MAX_TEXT: usize = 4 << 20;

/// The checkpoints of a run, whole.
#[derive(Debug, Clone)]
pub struct RunCheckpoints {
    /// The run.
    pub run_id: RunId,
    /// The one at its start.
    pub start: Option<RunCheckpoint>,
    /// The one at its end.
    pub end: Option<RunCheckpoint>,
}

/// Finds the checkpoints of a run, or of the latest that has any, whose name begins so.
pub fn find_run_checkpoints(log: &LogReader, run: Option<&str>) -> io::Result<Option<RunCheckpoints>> {
    let mut found: Option<RunCheckpoints> = None;
    find_last(log, |line| {
        if line.kind != "run.checkpoint" {
            return None;
        }
        let Ok(Event::RunCheckpoint(record)) = line.event() else { return None };
        let wanted = match &found {
            Some(found) => found.run_id == record.run_id,
            None => run.is_none_or(|name| is_named(record.run_id, name)),
        };
        if !wanted {
            return None;
        }
        let run_id = record.run_id;
        let found = found.get_or_insert(RunCheckpoints { run_id, start: None, end: None });
        match record.at {
            CheckpointAt::End => found.end = Some(record),
            CheckpointAt::Start => found.start = Some(record),
        }
        // The one at the start is the first of the two.
        found.start.is_some().then_some(())
    })?;
    Ok(found)
}

/// Returns every checkpoint that a log has, in its order.
pub fn all_checkpoints(log: &LogReader) -> io::Result<Vec<RunCheckpoint>> {
    let mut found = Vec::new();
    for_each_line(log, |line| {
        if line.kind == "run.checkpoint"
            && let Ok(Event::RunCheckpoint(record)) = line.event()
        {
            found.push(record);
        }
    })?;
    Ok(found)
}

/// Tells whether a run's name begins so; `run_` may be left out.
fn is_named(run: RunId, name: &str) -> bool {
    let run = run.as_str();
    run.starts_with(name) || run.split_once('_').is_some_and(|(_, rest)| rest.starts_with(name))
}

/// Compares the checkpoints of a run; with the lines themselves, unless only their numbers are wanted.
pub(crate) fn run_diff(workspaces: &Workspaces, found: &RunCheckpoints, only_stat: bool) -> Result<RunDiff> {
    let run_id = found.run_id;
    let (from, to) = (tree(found.start.as_ref(), run_id, "start")?, tree(found.end.as_ref(), run_id, "end")?);
    for tree in [from, to] {
        if !workspaces.has(&tree) {
            return Err(ServiceError::new(
                Code::SnapExpired,
                format!("the files of {run_id} are no longer kept"),
            ));
        }
    }
    let rules =
        |checkpoint: &Option<RunCheckpoint>| checkpoint.as_ref().and_then(|checkpoint| checkpoint.rules);
    let mut diff = RunDiff {
        run_id,
        from,
        to,
        how: found.end.as_ref().map_or(CheckpointHow::Live, |end| end.how),
        rules_differ: rules(&found.start) != rules(&found.end),
        total: 0,
        lines_added: 0,
        lines_removed: 0,
        files: Vec::new(),
    };
    let unusable = |error: WorkspaceError| ServiceError::caused_by(Code::Storage, error);
    let skipped = skipped_paths(workspaces, found).map_err(ServiceError::internal)?;
    let (source, mut room) = (workspaces.source(), MAX_TEXT);
    for changed in workspaces.compare(from, to) {
        let changed = changed.map_err(|error| unusable(error.into()))?;
        if changed.is_directory() || skipped.iter().any(|skipped| skipped.covers(&changed.path)) {
            continue;
        }
        diff.total += 1;
        let lines = match diff.files.len() < MAX_FILES {
            true => count_lines(source, &changed).map_err(ServiceError::internal)?,
            false => continue,
        };
        diff.lines_added += lines.map_or(0, |lines| lines.added);
        diff.lines_removed += lines.map_or(0, |lines| lines.removed);
        let text = match only_stat {
            true => None,
            false => diff_text(workspaces, &changed, &mut room).map_err(ServiceError::internal)?,
        };
        let file = TouchedFile {
            path: changed.path.as_slice().into(),
            change: file_change(changed.change),
            lines_added: lines.map(|lines| lines.added),
            lines_removed: lines.map(|lines| lines.removed),
        };
        diff.files.push(FileDiff { file, diff: text });
    }
    Ok(diff)
}

/// Returns the paths that either capture skipped: nobody knows what became of those.
pub fn skipped_paths(workspaces: &Workspaces, found: &RunCheckpoints) -> io::Result<Vec<SkippedPaths>> {
    let both = [&found.start, &found.end].into_iter().flatten().filter_map(|one| one.skipped.as_ref());
    both.map(|skipped| SkippedPaths::of(&from_record(skipped), workspaces.source())).collect()
}

fn diff_text(workspaces: &Workspaces, changed: &Changed, room: &mut usize) -> io::Result<Option<String>> {
    if *room == 0 {
        return Ok(None);
    }
    let mut text = Vec::new();
    write_unified(workspaces.source(), changed, &mut text)?;
    let Some(left) = room.checked_sub(text.len()) else { return Ok(None) };
    *room = left;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn tree(checkpoint: Option<&RunCheckpoint>, run: RunId, at: &str) -> Result<BlobId> {
    let why = match checkpoint {
        Some(RunCheckpoint { tree: Some(tree), .. }) => return Ok(*tree),
        Some(checkpoint) => match &checkpoint.not_taken {
            Some(not_taken) => {
                format!("the checkpoint at the {at} of {run} was not taken: {}", not_taken.detail)
            }
            None => format!("the checkpoint at the {at} of {run} was not taken"),
        },
        None => format!("{run} has no checkpoint at its {at} yet"),
    };
    Err(ServiceError::new(Code::CheckpointMissing, why))
}
