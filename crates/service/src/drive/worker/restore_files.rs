//! Files of a session restored before anything begins in it, as a rewind wants it: the last step of a rewind, which whoever comes
//! after a crash takes again. What was done, or why nothing could be, is recorded, and with that the session goes on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Event, Kind, SessionFilesRestored};
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;

use super::step::StepOutcome;
use super::{Worker, Workers};
use crate::drive::workspace_files::{FilesError, FilesRestored};
use crate::error::Result;
use crate::log_search::find_last;
use crate::test_knobs::crash_point;
use crate::workspaces::CaptureFacts;

/// How long a restore for which something ran out waits until it is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Worker {
    /// Restores the files of a session that waits for that.
    pub(super) fn restore_files(
        &mut self,
        workers: &Arc<Workers>,
        state: &SessionState,
    ) -> Result<StepOutcome> {
        let Some(restoring) = state.restoring else { return Ok(StepOutcome::Again) };
        self.set_held(Some("its files are being restored".to_owned()));
        workers.watcher.changed(self.session);
        crash_point("rewind.before_files");
        let tree = restoring.tree;
        let facts = capture_facts(workers, state, tree);
        let record = match workers.files.restore_files(tree, &facts, Path::new(&state.working_dir)) {
            Ok(FilesRestored { undo, changed, left }) => {
                SessionFilesRestored { tree, undo: Some(undo), changed, left, error: None }
            }
            Err(FilesError::Shortage(why)) => {
                let why = format!("its files cannot be restored yet: {why}");
                tracing::warn!("{why}");
                self.set_held(Some(why));
                return Ok(StepOutcome::Rest(Some(AGAIN)));
            }
            Err(FilesError::Failed(why)) => {
                tracing::error!("its files are left as they are: {why}");
                SessionFilesRestored { tree, undo: None, changed: 0, left: 0, error: Some(why.into()) }
            }
        };
        crash_point("rewind.after_files");
        workers.records.append(self.session, vec![record.into()])?;
        self.set_held(None);
        Ok(StepOutcome::Again)
    }
}

/// Returns what is known of the capture of a tree: the log of the session that was rewound has its checkpoint, as long as it is
/// there.
fn capture_facts(workers: &Workers, state: &SessionState, tree: BlobId) -> CaptureFacts {
    let Some(from) = state.forked_from else { return CaptureFacts::default() };
    let of_tree = |line: &Line<'_>| match (line.kind == Kind::RunCheckpoint.as_str()).then(|| line.event()) {
        Some(Ok(Event::RunCheckpoint(checkpoint))) if checkpoint.tree == Some(tree) => {
            Some(CaptureFacts::from(&checkpoint))
        }
        _ => None,
    };
    let found = workers.records.store.reader(from.session_id).and_then(|log| find_last(&log, of_tree));
    found.ok().flatten().unwrap_or_default()
}
