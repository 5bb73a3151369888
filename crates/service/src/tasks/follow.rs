//! Tasks followed through their sessions: what a session is doing says where its task stands, while its run has no end of its own.

use std::collections::BTreeSet;

use rekindle_domain::event::{CancelReason, TaskStatus};
use rekindle_domain::id::SessionId;
use rekindle_domain::task::status_mapping::{Mapped, SessionFacts, task_status};
use rekindle_domain::task::{Task, TasksState, compose};
use rekindle_wire::code::Code;

use super::Tasks;
use crate::error::{Result, ServiceError};
use crate::show::SessionEntry;

/// How often a session is looked at again while the stream of tasks grows.
const MOST_TRIES: usize = 16;

impl Tasks {
    /// Looks at sessions, and records what they say of their tasks. Returns those for which that failed and is worth trying again;
    /// of those that were behind before nothing is logged once more.
    pub(super) fn follow_all<'a>(
        &self,
        sessions: impl IntoIterator<Item = &'a SessionId>,
        behind: &BTreeSet<SessionId>,
    ) -> BTreeSet<SessionId> {
        let followed = |session: &&SessionId| match self.follow(**session) {
            Ok(()) => true,
            Err(error) => {
                if !behind.contains(*session) {
                    tracing::warn!("the task of session {session} cannot be updated: {}", error.text());
                }
                // A damaged stream says nothing before it is put right, with a start behind that.
                error.code == Code::TasksDamaged
            }
        };
        sessions.into_iter().filter(|session| !followed(session)).copied().collect()
    }

    fn follow(&self, session: SessionId) -> Result<()> {
        for _ in 0..MOST_TRIES {
            let state = self.state()?;
            let followed = self.try_follow(&state, session);
            // What it was decided from is not so any more: the task may have ended.
            if followed.as_ref().is_err_and(|error| error.code == Code::Moved) {
                continue;
            }
            self.hold_session_to_budgets(&state, session);
            return followed;
        }
        Err(ServiceError::moved())
    }

    fn try_follow(&self, state: &TasksState, session: SessionId) -> Result<()> {
        let Some(task) = state.begun().find(|task| task.session_id == Some(session)) else { return Ok(()) };
        let entry = self.views.directory.get(self.views.store(), session);
        let missed = entry.as_ref().and_then(|entry| entry.state.run.as_ref());
        let missed = missed.map(|run| compose::catch_up(task, session, run)).unwrap_or_default();
        if !missed.is_empty() {
            return self.append_to(state, missed);
        }
        let mapped = match entry {
            Some(entry) if !entry.state.deleted => self.mapped(task, &entry),
            _ => Some(failed("its session was removed")),
        };
        match mapped.and_then(|mapped| compose::follow_session(task, &mapped)) {
            Some(record) => self.append_to(state, vec![record]),
            None => Ok(()),
        }
    }

    /// Returns where a session says that its task stands.
    fn mapped(&self, task: &Task, entry: &SessionEntry) -> Option<Mapped> {
        let state = &entry.state;
        let run = state.run.as_ref()?;
        if Some(run.run_id) != task.run_id {
            let reason = Some("another message took its place in its session".into());
            return Some(Mapped { status: TaskStatus::Cancelled, reason });
        }
        let is_cancelled = run.cancel.is_some_and(|why| why != CancelReason::WaitTimeout);
        if run.end.is_some() && is_cancelled {
            let status = TaskStatus::Cancelled;
            return Some(Mapped { status, reason: Some("its run was cancelled".into()) });
        }
        if state.closed && run.end.is_some() {
            return Some(failed("its session was closed"));
        }
        let view = self.views.session(entry);
        task_status(&SessionFacts {
            status: view.status,
            waits_for: run.waits.first().map(|wait| wait.kind),
            held: self.views.held_for(state),
            missing_env: &view.missing_env,
        })
    }
}

fn failed(why: &str) -> Mapped {
    Mapped { status: TaskStatus::Failed, reason: Some(why.to_owned()) }
}
