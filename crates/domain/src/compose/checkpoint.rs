//! Checkpoints are recorded: that of a run's end before that of the next one's start, both from one look at the directory.

use crate::blob_id::BlobId;
use crate::checkpoint::{Due, how_at_end};
use crate::event::{
    ChangedFiles, CheckpointAt, CheckpointHow, DirectoryIdentity, FilesTouched, GitState, NotTaken,
    RunCheckpoint, SkippedPaths,
};
use crate::id::{BootId, RunId};
use crate::line::Draft;
use crate::time::Timestamp;

/// A look at a directory: what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The tree.
    pub tree: BlobId,
    /// Where the HEAD of git was.
    pub git: Option<GitState>,
    /// The hash of the rules.
    pub rules: BlobId,
    /// What was left out.
    pub skipped: SkippedPaths,
    /// What is not as it was at the start of the run that has ended, if that is known.
    pub files_touched: Option<FilesTouched>,
    /// Which directory it is.
    pub directory: Option<DirectoryIdentity>,
    /// What is not as it was at the end of the run before, if that was asked for and is known.
    pub files_changed: Option<ChangedFiles>,
}

/// A capture that was not taken, and what a glance at the directory tells without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedCapture {
    /// Why not.
    pub not_taken: NotTaken,
    /// Where the HEAD of git was.
    pub git: Option<GitState>,
    /// Which directory it is; none if nobody could look.
    pub directory: Option<DirectoryIdentity>,
}

impl From<NotTaken> for MissedCapture {
    fn from(not_taken: NotTaken) -> MissedCapture {
        MissedCapture { not_taken, git: None, directory: None }
    }
}

/// Who looked, at what, and since when.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The directory, as the session names it.
    pub root: &'a str,
    /// The daemon's life.
    pub boot_id: BootId,
    /// When it began to look.
    pub begun: Timestamp,
}

/// Composes the records of checkpoints that are due.
pub fn checkpoints(due: &Due, look: Look<'_>, outcome: Result<Capture, MissedCapture>) -> Vec<Draft> {
    let (mut capture, not_taken, git, directory) = match outcome {
        Ok(capture) => {
            let (git, directory) = (capture.git.clone(), capture.directory);
            (Some(capture), None, git, directory)
        }
        Err(MissedCapture { not_taken, git, directory }) => (None, Some(not_taken), git, directory),
    };
    let touched = capture.as_mut().and_then(|capture| capture.files_touched.take());
    let changed = capture.as_mut().and_then(|capture| capture.files_changed.take());
    let record = |run_id: RunId, at, how, touched: Option<FilesTouched>, changed: Option<ChangedFiles>| {
        let capture = capture.as_ref();
        RunCheckpoint {
            run_id,
            at,
            how,
            root: look.root.to_owned(),
            tree: capture.map(|capture| capture.tree),
            not_taken: not_taken.clone().map(Box::new),
            git: git.clone().map(Box::new),
            rules: capture.map(|capture| capture.rules),
            skipped: capture.map(|capture| Box::new(capture.skipped.clone())),
            files_touched: touched.map(Box::new),
            directory,
            files_changed: changed.map(Box::new),
        }
    };
    let end = due.end.as_ref().map(|owed| {
        let how = how_at_end(owed, look.boot_id, look.begun);
        record(owed.run_id, CheckpointAt::End, how, touched, None).into()
    });
    let start =
        due.start.map(|run| record(run, CheckpointAt::Start, CheckpointHow::Live, None, changed).into());
    end.into_iter().chain(start).collect()
}
