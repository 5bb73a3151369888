//! Tasks changed by people and by rules: cancelled, made more urgent.

use rekindle_domain::event::{CancelReason, TaskChanged, TaskKind, TaskStatus};
use rekindle_domain::id::{PipelineId, RunName, TaskId};
use rekindle_domain::task::compose::{self, actor, user};
use rekindle_domain::task::{Task, TaskCancel};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::Tasks;
use crate::commands::cancel_run::cancel;
use crate::error::{Result, ServiceError};
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
            return Err(ServiceError::new(Code::InvalidTask, "priority must be -100 to 100"));
        }
        if self.state()?.get(id).is_none() {
            return Err(self.not_open(id)?);
        }
        let changed =
            TaskChanged { task_id: id, actor: user(by).into(), priority: Some(priority), reason: None };
        self.append(vec![changed.into()])
    }

    /// Says why nothing can be done to a task that is not open: it has ended, or never was.
    pub(super) fn not_open(&self, id: TaskId) -> Result<ServiceError> {
        Ok(match self.ended_status(id)? {
            Some(status) => conflict(id, status, "open"),
            None => self.not_queued(id),
        })
    }

    /// Says that a task is none of the queue: a run that somebody began by hand, or none at all.
    pub(super) fn not_queued(&self, id: TaskId) -> ServiceError {
        let rows = self.database.tasks(vec![id]).unwrap_or_default();
        if let Some(name) =
            rows.first().filter(|row| row.kind == TaskKind::Pipeline).and_then(|_| run_name(id))
        {
            let message = format!("{id} is a run of a pipeline: resume {name} instead");
            return ServiceError::new(Code::TaskStateConflict, message).hint(Hint::ForceResume);
        }
        let run = rows.first().filter(|row| row.kind == TaskKind::Run);
        match run.and_then(|run| run.session_id) {
            Some(session) => {
                let message = format!("{id} is a run that was started by hand: use its session {session}");
                ServiceError::new(Code::TaskStateConflict, message)
            }
            None => unknown(id),
        }
    }
}

pub(super) fn conflict(id: TaskId, status: TaskStatus, expected: &str) -> ServiceError {
    let message = format!("{id} is {}, not {expected}", status.as_str());
    ServiceError::new(Code::TaskStateConflict, message)
}

/// Returns the name of the pipeline run that a task would be.
pub(super) fn run_name(task: TaskId) -> Option<RunName> {
    RunName::of(PipelineId::from_ulid(task.to_ulid()?))
}

/// Says that there is no such task.
pub(super) fn unknown(id: TaskId) -> ServiceError {
    ServiceError::new(Code::TaskUnknown, format!("there is no task {id}")).hint(Hint::ListTasks)
}
