//! Tasks that have ended, read from the log of their stream: nobody remembers them.

use std::io;

use rekindle_domain::event::{EndedTask, TaskStatus};
use rekindle_domain::id::TaskId;
use rekindle_domain::line::Line;
use rekindle_domain::task::transition::{Standing, Transition, task_of, transition};
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::Timestamp;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;

use super::Tasks;
use crate::error::{Result, ServiceError};

/// What the log says of one task.
pub(super) struct TaskHistory {
    /// The task as it was before its newest end, or is.
    pub(super) task: Task,
    /// Where it stands.
    pub(super) standing: Standing,
    /// Why.
    pub(super) reason: Option<String>,
    /// When it ended, if it has.
    pub(super) ended_at: Option<Timestamp>,
}

impl Tasks {
    /// Returns how a task has ended; none if it has not, or there is none.
    pub(super) fn ended_status(&self, id: TaskId) -> Result<Option<TaskStatus>> {
        let found = self.history(id)?;
        Ok(found.map(|found| found.standing.status).filter(|status| status.is_ended()))
    }

    /// Returns a task that has ended, whole.
    pub(super) fn ended(&self, id: TaskId) -> Result<Option<EndedTask>> {
        let found = self.history(id)?.filter(|found| found.standing.status.is_ended());
        let whole = |found: TaskHistory| {
            found.task.to_ended(found.standing.status, found.reason, found.standing.transitions)
        };
        Ok(found.map(whole))
    }

    /// Reads what the log says of a task.
    pub(super) fn history(&self, id: TaskId) -> Result<Option<TaskHistory>> {
        self.read_history(id).map_err(|error| ServiceError::caused_by(Code::Storage, error))
    }

    fn read_history(&self, id: TaskId) -> io::Result<Option<TaskHistory>> {
        let reader = match self.store.tasks_reader() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            reader => reader?,
        };
        // Most lines are about others, and need not be taken apart.
        let name = memchr::memmem::Finder::new(id.as_str());
        let (mut state, mut standing) = (TasksState::default(), None);
        let mut found: Option<TaskHistory> = None;
        let mut lines = reader.forward(Cursor::START);
        while let Some(raw) = lines.next()? {
            if name.find(raw.bytes).is_none() {
                continue;
            }
            let Ok(line) = Line::parse(raw.bytes) else { continue };
            let Some(event) = line.event().ok().filter(|event| task_of(event) == Some(id)) else { continue };
            let Ok(Transition::Changed(now)) = transition(standing, &event) else { continue };
            standing = Some(now);
            let _ = state.apply(line.seq, line.time(), &event);
            match state.get(id) {
                Some(task) => {
                    let reason = task.reason.clone();
                    let task = Task::clone(task);
                    found = Some(TaskHistory { task, standing: now, reason, ended_at: None });
                }
                None => {
                    if let Some(found) = &mut found {
                        let why = match &event {
                            rekindle_domain::event::Event::TaskEnded(ended) => ended.reason.as_deref(),
                            _ => None,
                        };
                        (found.standing, found.ended_at) = (now, Some(line.time()));
                        found.reason = why.map(str::to_owned);
                    }
                }
            }
        }
        Ok(found)
    }
}
