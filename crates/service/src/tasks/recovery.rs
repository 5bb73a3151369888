//! Tasks that were going on when the last daemon ended: what is found of each decides what becomes of it, and is recorded as the
//! reason. Agents are taken over, journals read and runs continued by the workers of their sessions.

use std::collections::BTreeSet;

use rekindle_domain::event::{TaskChanged, TaskEnded, TaskRequeued, TaskStatus};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::{AgentPresence, Held, Step, next_step};
use rekindle_domain::task::Task;
use rekindle_domain::task::compose::actor;
use rekindle_domain::task::resumer::{Evidence, Outcome, resume_outcome, resume_reason};

use super::Tasks;
use crate::show::SessionEntry;

impl Tasks {
    /// Looks at all tasks that have begun: after a start, nobody knows what happened to them meanwhile. Returns the sessions that could
    /// not be followed.
    pub(super) fn resume_all(&self) -> BTreeSet<SessionId> {
        let Ok(state) = self.state() else { return BTreeSet::new() };
        for task in state.begun() {
            let entry = task
                .session_id
                .and_then(|session| self.views.directory.get(self.views.store(), session))
                .filter(|entry| entry.is_usable() && !entry.state.deleted);
            let record = resume_record(task, &self.evidence(task, entry.as_ref()), entry.as_ref());
            if let Err(error) = record.map_or(Ok(()), |record| self.append(vec![record])) {
                tracing::warn!("{} cannot be checked: {}", task.id, error.text());
            }
        }
        self.follow_all(state.begun().filter_map(|task| task.session_id.as_ref()), &BTreeSet::new())
    }

    /// Returns what is found of the latest attempt of a task.
    fn evidence(&self, task: &Task, entry: Option<&SessionEntry>) -> Evidence {
        let agents = &self.views.workers.agents;
        let found = entry.map_or(AgentPresence::Nobody, |entry| agents.observe(&entry.state));
        let run = entry.and_then(|entry| entry.state.run.as_ref());
        let run = run.filter(|run| Some(run.run_id) == task.run_id);
        let gives_up = entry.is_some_and(|entry| {
            let about = agents.circumstances(&entry.state, AgentPresence::Nobody);
            matches!(
                next_step(&entry.state, &about),
                Step::Rest(Some(Held::Never | Held::Budget | Held::TimedOut | Held::NoDirectory))
            )
        });
        Evidence {
            agent_lives: matches!(found, AgentPresence::Lives | AgentPresence::Silent),
            left_journal: found == AgentPresence::Dead,
            has_session: entry.is_some_and(|entry| !entry.state.closed),
            // Of what nobody can read anything may have been done.
            may_have_effects: run.is_none_or(|run| run.tool_calls > 0 || task.spec.provider.is_command()),
            has_attempts: match entry {
                Some(_) => !gives_up,
                None => task.attempt < task.spec.max_attempts,
            },
            is_repeatable: task.spec.repeatable,
        }
    }
}

/// Composes what is recorded of a task after a start; nothing if its run has ended meanwhile, which says more.
fn resume_record(task: &Task, evidence: &Evidence, entry: Option<&SessionEntry>) -> Option<Draft> {
    let run = entry.and_then(|entry| entry.state.run.as_ref());
    let reason = resume_reason(evidence);
    let noted = |reason: String| -> Draft {
        let (task_id, actor) = (task.id, actor::RECOVERY.into());
        TaskChanged { task_id, actor, priority: None, reason: Some(reason.into()) }.into()
    };
    match resume_outcome(evidence) {
        // Another run goes on there, or the one that it knows is over: it is followed.
        _ if run.is_some_and(|run| Some(run.run_id) != task.run_id) => None,
        Outcome::Adopt | Outcome::Harvest | Outcome::RetryWithContext => Some(noted(reason)),
        // Where there is a session, its ladder says why it gives up.
        Outcome::MarkFailed if entry.is_some() => None,
        Outcome::RetryFresh if task.cancel.is_none() => Some(
            TaskRequeued {
                task_id: task.id,
                attempt: task.attempt,
                actor: actor::RECOVERY.into(),
                reason: reason.into(),
                delay_ms: 0,
                fresh: true,
            }
            .into(),
        ),
        Outcome::RetryFresh | Outcome::MarkFailed => {
            let status = task.cancel.as_ref().map_or(TaskStatus::Failed, |cancel| cancel.status);
            let actor = actor::RECOVERY.into();
            let (task_id, attempt, reason) = (task.id, task.attempt, Some(reason.into()));
            Some(TaskEnded { task_id, attempt, status, actor, reason }.into())
        }
    }
}
