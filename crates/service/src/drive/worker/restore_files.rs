//! Files of a session restored before anything begins in it, as a rewind, a fork with files or somebody wants it: a step of its own,
//! which whoever comes after a crash takes again. What was done, or why nothing could be, is recorded, and with that the session goes on.

use std::path::Path;
use std::time::Duration;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Event, Kind, Restoring, SessionFilesRestored};
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;

use super::step::StepOutcome;
use super::{Worker, Workers};
use crate::drive::workspace_files::{FilesError, FilesRestored};
use crate::error::{Result, ServiceError};
use crate::log_search::find_last;
use crate::test_knobs::{crash_point, hurried};
use crate::workspaces::CaptureFacts;

/// How long a restore for which something ran out waits until it is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Worker {
    /// Restores the files of a session that waits for that and has no agent.
    pub(super) fn restore_files(&mut self, workers: &Workers, state: &SessionState) -> Result<StepOutcome> {
        Ok(match self.try_restore_files(workers, state)? {
            None => StepOutcome::Again,
            Some(why) => {
                tracing::warn!("{why}");
                self.set_held(Some(why));
                StepOutcome::Rest(Some(hurried("RESTORE_AGAIN", AGAIN)))
            }
        })
    }

    /// Restores the files of a session that waits for that, beside its agent, which is at rest. That there is no room is an error:
    /// whoever supervises tries again.
    pub(super) fn restore_files_beside_agent(
        &mut self,
        workers: &Workers,
        state: &SessionState,
    ) -> Result<()> {
        match self.try_restore_files(workers, state)? {
            None => Ok(()),
            Some(why) => Err(ServiceError::new(Code::Storage, why)),
        }
    }

    /// Restores files and records what came of it; returns why it cannot be done yet.
    fn try_restore_files(&mut self, workers: &Workers, state: &SessionState) -> Result<Option<String>> {
        let Some(restoring) = &state.restoring else { return Ok(None) };
        self.set_held(Some("its files are being restored".to_owned()));
        workers.watcher.changed(self.session);
        crash_point("rewind.before_files");
        let tree = restoring.tree;
        let facts = capture_facts(workers, state, restoring);
        let purpose = format!("{} {}", self.session, restoring.seq.unwrap_or_default());
        let root = Path::new(&state.working_dir);
        let made = match &restoring.worktree {
            None => Ok(()),
            Some(worktree) => {
                workers.files.add_worktree(worktree, root, workers.agents.environment.umask(state))
            }
        };
        crash_point("fork.after_worktree");
        let restored = made.and_then(|()| workers.files.restore_files(&purpose, tree, &facts, root));
        let record = match restored {
            Ok(FilesRestored { undo, changed, files, left }) => {
                SessionFilesRestored { tree, undo: Some(undo), changed, files, left, error: None }
            }
            Err(FilesError::NotYet(why)) => {
                return Ok(Some(format!("its files cannot be restored yet: {why}")));
            }
            Err(FilesError::Failed(why)) => {
                tracing::error!("its files are left as they are: {why}");
                let (undo, files, error) = (None, Vec::new(), Some(why.into()));
                SessionFilesRestored { tree, undo, changed: 0, files, left: 0, error }
            }
        };
        crash_point("rewind.after_files");
        workers.records.append(self.session, vec![record.into()])?;
        crash_point("rewind.after_files_record");
        workers.files.note_recorded(root);
        self.set_held(None);
        workers.watcher.changed(self.session);
        Ok(None)
    }
}

/// Returns what is known of the capture of a tree: the history of the session that it is of has its checkpoint, as long as it is
/// there.
fn capture_facts(workers: &Workers, state: &SessionState, restoring: &Restoring) -> CaptureFacts {
    let own = restoring.run_id.map(|_| state.id);
    let Some(session) = own.or(state.forked_from.map(|from| from.session_id)) else {
        return CaptureFacts::default();
    };
    let tree: BlobId = restoring.tree;
    let of_tree = |line: &Line<'_>| match (line.kind == Kind::RunCheckpoint.as_str()).then(|| line.event()) {
        Some(Ok(Event::RunCheckpoint(checkpoint))) if checkpoint.tree == Some(tree) => {
            Some(CaptureFacts::from(&checkpoint))
        }
        _ => None,
    };
    let history = workers.records.store.history(session);
    let found = history.and_then(|history| find_last(&history.reader, of_tree));
    found.ok().flatten().unwrap_or_default()
}
