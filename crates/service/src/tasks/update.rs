//! Tasks changed by people and by rules: cancelled, tried again, made more urgent.

use rekindle_domain::event::{CancelReason, TaskChanged, TaskRetried, TaskStatus};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::task::compose::{self, actor, user};
use rekindle_domain::task::{Task, TaskCancel, is_met};
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::RetryTask;

use super::{Tasks, refused};
use crate::commands::cancel_run::cancel;
use crate::drive::environment;
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::test_knobs::crash_point;

impl Tasks {
    /// Cancels a task because somebody wants it to end.
    pub(crate) fn cancel(&self, id: TaskId, reason: Option<&str>, by: &str) -> Result<()> {
        let state = self.state()?;
        let Some(task) = state.get(id) else { return Err(self.not_open(id)?) };
        self.end(task, &user(by), reason.unwrap_or("cancelled"), TaskStatus::Cancelled)
    }

    /// Ends a task: recorded first, then its run is cancelled, if one goes on.
    pub(super) fn end(&self, task: &Task, actor: &str, reason: &str, status: TaskStatus) -> Result<()> {
        crash_point("task.before_cancel");
        self.append(compose::cancel(task, actor, reason, status))?;
        crash_point("task.after_cancel");
        let cancel = TaskCancel { actor: actor.to_owned(), reason: reason.to_owned(), status };
        self.cancel_run(task, &cancel)
    }

    /// Cancels the run of a task whose end was asked for; one that is over needs none.
    pub(super) fn cancel_run(&self, task: &Task, wish: &TaskCancel) -> Result<()> {
        let Some(session) = task.session_id.filter(|_| task.status != TaskStatus::Pending) else {
            return Ok(());
        };
        let Ok(current) = self.store.open_session(session) else { return Ok(()) };
        let run = current.state.run.as_ref().filter(|run| Some(run.run_id) == task.run_id);
        if run.is_none_or(|run| run.cancel.is_some()) {
            return Ok(());
        }
        let why = match wish.actor.as_str() {
            actor::BUDGET => CancelReason::Budget,
            actor::SCHEDULER => CancelReason::Deadline,
            _ => CancelReason::User,
        };
        match cancel(&self.views.workers, session, why, &wish.actor) {
            // It has just ended by itself.
            Err(error) if error.code == Code::NothingRunning => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Makes a task more or less urgent.
    pub(crate) fn set_priority(&self, id: TaskId, priority: i8, by: &str) -> Result<()> {
        if !(-100..=100).contains(&priority) {
            return Err(ServiceError::new(Code::InvalidTask, "a priority is from -100 to 100"));
        }
        if self.state()?.get(id).is_none() {
            return Err(self.not_open(id)?);
        }
        let changed =
            TaskChanged { task_id: id, actor: user(by).into(), priority: Some(priority), reason: None };
        self.append(vec![changed.into()])
    }

    /// Has a task that failed or was cancelled attempted again.
    pub(crate) fn retry(&self, id: TaskId, retry: &RetryTask, by: &str) -> Result<()> {
        environment::check(&retry.env)?;
        let state = self.state()?;
        if let Some(task) = state.get(id) {
            return Err(conflict(id, task.status, "failed or cancelled"));
        }
        let ended = self.ended(id)?.ok_or_else(|| unknown(id))?;
        if ended.status == TaskStatus::Completed {
            return Err(conflict(id, ended.status, "failed or cancelled"));
        }
        let mut unmet = Vec::new();
        for one in &ended.task.after {
            let is_open = state.get(one.task_id).is_some();
            if is_open || !self.ended_status(one.task_id)?.is_some_and(|now| is_met(one.condition, now)) {
                unmet.push(*one);
            }
        }
        if let Some(failed) = unmet.iter().find(|one| state.get(one.task_id).is_none()) {
            let message = format!(
                "{id} waits for {}, which has not ended as it should: retry that first",
                failed.task_id
            );
            return Err(ServiceError::new(Code::TaskStateConflict, message));
        }
        if !retry.env.is_empty() {
            locked(&self.brought).insert(id, retry.env.clone());
        }
        let retried = TaskRetried {
            task_id: id,
            actor: user(by).into(),
            reason: "retried".into(),
            ended: Box::new(ended),
            fresh: retry.fresh,
            unmet,
        };
        // It was looked for in what there was: nothing may have come since.
        let expect = Expect::LastSeq(state.position().last_seq);
        let append = Append { expect, ..Append::durable(StreamId::tasks(), vec![retried.into()]) };
        self.store.append(append).map(drop).map_err(refused)
    }

    /// Says why nothing can be done to a task that is not open: it has ended, or never was.
    fn not_open(&self, id: TaskId) -> Result<ServiceError> {
        Ok(match self.ended_status(id)? {
            Some(status) => conflict(id, status, "open"),
            None => unknown(id),
        })
    }
}

fn conflict(id: TaskId, status: TaskStatus, expected: &str) -> ServiceError {
    let message = format!("{id} is {}, not {expected}", status.as_str());
    ServiceError::new(Code::TaskStateConflict, message)
}

/// Says that there is no such task.
pub(super) fn unknown(id: TaskId) -> ServiceError {
    ServiceError::new(Code::TaskUnknown, format!("there is no task {id}")).hint(Hint::ListTasks)
}
