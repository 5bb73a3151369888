//! The records of tasks, composed: what is recorded of a task with what happens to its run, and with what people ask.

use crate::event::{
    EndedTask, Event, RunStarted, TaskCancelRequested, TaskClaimed, TaskEnded, TaskRequeued, TaskResumed,
    TaskStatus, TaskWaiting,
};
use crate::id::{RunId, SessionId, TaskId};
use crate::line::Draft;
use crate::session::{End, Run};

use super::retry::{RunSoFar, retry_in_ms};
use super::scheduler::Failed;
use super::state::Task;
use super::status_mapping::Mapped;

/// Who changes tasks, where it is no person.
pub mod actor {
    /// The scheduler.
    pub const SCHEDULER: &str = "scheduler";
    /// Recovery after a crash.
    pub const RECOVERY: &str = "recovery";
    /// The agent itself.
    pub const AGENT: &str = "agent";
    /// A budget.
    pub const BUDGET: &str = "budget";
    /// Another task.
    pub const DEPENDENCY: &str = "dependency";
}

/// What the reason begins with of a task that has used its budget, or most of it.
pub const BUDGET_REASON: &str = "budget: ";

/// The reason of a task for which it is too late.
pub const DEADLINE_REASON: &str = "deadline";

/// Composes the record of an attempt that begins; it belongs into one append with the run's.
pub fn claim(task: &Task, session_id: SessionId, run_id: RunId, resume_prompt: Option<String>) -> Draft {
    TaskClaimed {
        task_id: task.id,
        attempt: task.attempt + 1,
        session_id,
        run_id,
        actor: actor::SCHEDULER.into(),
        reason: task.reason.clone().filter(|_| task.attempt > 0).map(Into::into),
        resume_prompt: resume_prompt.map(Into::into),
    }
    .into()
}

/// Composes what a record of a run means for its task; nothing for most. It belongs into one append with that record. `run` is the
/// run as it was before the record.
pub fn with_run(task: &Task, run: RunSoFar<'_>, session: SessionId, event: &Event<'_>) -> Option<Draft> {
    let is_its = |run_id: RunId| task.run_id == Some(run_id) && task.session_id == Some(session);
    match event {
        Event::RunStarted(started) if started.continues.is_some_and(is_its) => Some(
            TaskResumed {
                task_id: task.id,
                attempt: started.attempt,
                session_id: session,
                run_id: started.run_id,
                actor: actor::RECOVERY.into(),
                reason: "continued".into(),
                ended: None,
            }
            .into(),
        ),
        Event::RunCompleted(completed) if is_its(completed.run_id) => {
            let reason = completed.stop_reason.as_deref().map(str::to_owned);
            Some(ended(task, TaskStatus::Completed, actor::AGENT.into(), reason))
        }
        Event::RunFailed(failed) if is_its(failed.run_id) => {
            let again = retry_in_ms(task, run, &failed.error);
            Some(match (again, &task.cancel) {
                (Some(delay_ms), _) => requeued(task, &failed.error, delay_ms),
                (None, Some(cancel)) => {
                    ended(task, cancel.status, cancel.actor.clone(), Some(cancel.reason.clone()))
                }
                (None, None) => {
                    ended(task, TaskStatus::Failed, actor::AGENT.into(), Some(failed.error.as_ref().into()))
                }
            })
        }
        Event::RunCancelled(cancelled) if is_its(cancelled.run_id) => Some(match &task.cancel {
            Some(cancel) => ended(task, cancel.status, cancel.actor.clone(), Some(cancel.reason.clone())),
            None => {
                let by = cancelled.by.as_deref().map_or_else(|| actor::AGENT.to_owned(), user);
                ended(task, TaskStatus::Cancelled, by, Some("its run was cancelled".into()))
            }
        }),
        _ => None,
    }
}

/// Tells whether a rule ended a task that would end it again: its budget, or its deadline.
pub fn is_ended_by_rule(ended: &EndedTask) -> bool {
    let why = ended.reason.as_deref().unwrap_or_default();
    ended.status == TaskStatus::Failed && (why.starts_with(BUDGET_REASON) || why == DEADLINE_REASON)
}

/// Composes the return of a task whose attempt was over: a person's message, or word to go on, begins another run where it worked.
/// `ended` has the task if it had ended.
pub fn bring_back(
    task_id: TaskId,
    ended: Option<EndedTask>,
    session_id: SessionId,
    started: &RunStarted<'_>,
) -> Draft {
    let reason = if started.continues.is_some() { "resumed by a person" } else { "a person's message" };
    TaskResumed {
        task_id,
        attempt: started.attempt,
        session_id,
        run_id: started.run_id,
        actor: "user".into(),
        reason: reason.into(),
        ended: ended.map(Box::new),
    }
    .into()
}

/// Composes what a later run of its own means for a task that does not know of it yet: that it goes on with that, and how it ended if
/// it has. Nothing if it is known.
pub fn catch_up(task: &Task, session: SessionId, run: &Run) -> Vec<Draft> {
    if run.task_id != Some(task.id) || task.run_id == Some(run.run_id) || run.attempt <= task.attempt {
        return Vec::new();
    }
    let resumed = TaskResumed {
        task_id: task.id,
        attempt: run.attempt,
        session_id: session,
        run_id: run.run_id,
        actor: actor::RECOVERY.into(),
        reason: "continued".into(),
        ended: None,
    };
    let now = Task { attempt: run.attempt, ..task.clone() };
    let end = match run.end {
        Some(End::Completed) => Some(ended(&now, TaskStatus::Completed, actor::AGENT.into(), None)),
        Some(End::Failed) => {
            Some(ended(&now, TaskStatus::Failed, actor::AGENT.into(), Some("its run failed".into())))
        }
        Some(End::Cancelled) => {
            let why = Some("its run was cancelled".into());
            Some(ended(&now, TaskStatus::Cancelled, actor::AGENT.into(), why))
        }
        None | Some(End::Interrupted { .. }) => None,
    };
    [resumed.into()].into_iter().chain(end).collect()
}

/// Composes the end of a task that can never begin.
pub fn fail_pending(task: &Task, why: Failed) -> Draft {
    let (actor, reason) = match why {
        Failed::Deadline => (actor::SCHEDULER, DEADLINE_REASON.to_owned()),
        Failed::Dependency(on) => (actor::DEPENDENCY, format!("dependency: {on}")),
    };
    ended(task, TaskStatus::Failed, actor.into(), Some(reason))
}

/// Composes the wish that a task ends, and its end if nothing of it runs. A person's comes to `cancelled`, a rule's to `failed`.
pub fn cancel(task: &Task, actor: &str, reason: &str, status: TaskStatus) -> Vec<Draft> {
    let asked = TaskCancelRequested {
        task_id: task.id,
        actor: actor.to_owned().into(),
        reason: reason.to_owned().into(),
        status,
    };
    let end = (task.status == TaskStatus::Pending)
        .then(|| ended(task, status, actor.to_owned(), Some(reason.to_owned())));
    [asked.into()].into_iter().chain(end).collect()
}

/// Composes the change of a task that its session has come to without an end of its run; nothing if it stands there already.
pub fn follow_session(task: &Task, mapped: &Mapped) -> Option<Draft> {
    if task.status == mapped.status && task.reason == mapped.reason {
        return None;
    }
    let (session_id, run_id) = (task.session_id?, task.run_id?);
    let reason = mapped.reason.clone().unwrap_or_default();
    match mapped.status {
        TaskStatus::WaitingInput => Some(
            TaskWaiting {
                task_id: task.id,
                attempt: task.attempt,
                actor: actor::AGENT.into(),
                reason: reason.into(),
            }
            .into(),
        ),
        // Why it runs changes nothing, unless it did not run or something has happened to it.
        TaskStatus::Running if task.status == TaskStatus::Running && mapped.reason.is_none() => None,
        TaskStatus::Running => Some(
            TaskResumed {
                task_id: task.id,
                attempt: task.attempt,
                session_id,
                run_id,
                actor: if mapped.reason.is_some() { actor::RECOVERY } else { actor::AGENT }.into(),
                reason: reason.into(),
                ended: None,
            }
            .into(),
        ),
        status if status.is_ended() => Some(match &task.cancel {
            Some(cancel) => ended(task, cancel.status, cancel.actor.clone(), Some(cancel.reason.clone())),
            None => ended(task, status, actor::RECOVERY.into(), mapped.reason.clone()),
        }),
        _ => None,
    }
}

/// Names a person as an actor.
pub fn user(name: &str) -> String {
    match name.split_once(':') {
        Some(("user" | "token", _)) => name.to_owned(),
        _ => format!("user:{name}"),
    }
}

/// Composes that an attempt came to nothing and the task waits for its turn again.
fn requeued(task: &Task, reason: &str, delay_ms: u64) -> Draft {
    TaskRequeued {
        task_id: task.id,
        attempt: task.attempt,
        actor: actor::SCHEDULER.into(),
        reason: format!("retry: {reason}").into(),
        delay_ms,
        fresh: false,
    }
    .into()
}

fn ended(task: &Task, status: TaskStatus, actor: String, reason: Option<String>) -> Draft {
    let reason = reason.map(Into::into);
    TaskEnded { task_id: task.id, attempt: task.attempt, status, actor: actor.into(), reason }.into()
}
