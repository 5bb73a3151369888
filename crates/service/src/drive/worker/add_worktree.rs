//! The worktree of a session's own, made before its first agent is launched: a step of its own, which whoever comes after a crash
//! takes again.

use std::path::Path;
use std::time::Duration;

use rekindle_domain::compose::interrupt::Ending;
use rekindle_domain::event::SessionWorktreeAdded;
use rekindle_domain::session::SessionState;

use super::step::StepOutcome;
use super::{Worker, Workers};
use crate::drive::workspace_files::FilesError;
use crate::error::Result;
use crate::test_knobs::{crash_point, hurried};
use crate::workspaces::session_worktree::prepare::Surroundings;

/// How long a worktree for which something ran out waits until it is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Worker {
    /// Makes the worktree that a session wants. Where that is not possible its run fails, and the next one tries again.
    pub(super) fn add_worktree(&mut self, workers: &Workers, state: &SessionState) -> Result<StepOutcome> {
        let Some(wanted) = state.missing_worktree() else { return Ok(StepOutcome::Again) };
        self.set_held(Some("its worktree is being made".to_owned()));
        workers.watcher.changed(self.session);
        crash_point("worktree.before");
        let environment = &workers.agents.environment;
        let around = Surroundings {
            env: &environment.of(state),
            umask: environment.umask(state),
            is_stopping: &|| workers.is_stopping() || workers.is_superseded(),
        };
        match workers.files.add_session_worktree(wanted, Path::new(&state.working_dir), &around) {
            Ok(added) => {
                crash_point("worktree.after");
                let record = SessionWorktreeAdded {
                    commit: added.commit.into(),
                    carried: added.carried,
                    copied: added.copied,
                    setup: added.setup,
                };
                workers.records.append(self.session, vec![record.into()])?;
                crash_point("worktree.after_record");
                self.set_held(None);
                Ok(StepOutcome::Again)
            }
            Err(FilesError::NotYet(why)) => {
                let why = format!("its worktree cannot be made yet: {why}");
                tracing::warn!("{why}");
                self.set_held(Some(why));
                Ok(StepOutcome::Rest(Some(hurried("RESTORE_AGAIN", AGAIN))))
            }
            Err(FilesError::Failed(why)) => {
                self.set_held(None);
                let error = format!("its worktree cannot be made: {why}");
                self.end_run(workers, state, Ending::Failed { error })?;
                Ok(StepOutcome::Again)
            }
        }
    }
}
