//! The transition of a task: what one record does to where the task stands. The fold asks this of what it remembers, and the
//! projection of its rows, so that both come to the same.

use crate::event::{Event, TaskStatus};
use crate::id::TaskId;

/// The standing of a task: everything that decides what may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands.
    pub status: TaskStatus,
    /// Attempts that have begun.
    pub attempt: u32,
    /// Records of it that count: each has the next number in its history.
    pub transitions: u32,
}

/// What a record does to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// Nothing: it is about an attempt that is over.
    Ignored,
    /// The task stands there from now on.
    Changed(Standing),
}

/// Returns the task that a record is about; none if it is about something else.
pub fn task_of(event: &Event<'_>) -> Option<TaskId> {
    Some(match event {
        Event::TaskCreated(record) => record.task_id,
        Event::TaskClaimed(record) => record.task_id,
        Event::TaskWaiting(record) => record.task_id,
        Event::TaskResumed(record) => record.task_id,
        Event::TaskRequeued(record) => record.task_id,
        Event::TaskChanged(record) => record.task_id,
        Event::TaskCancelRequested(record) => record.task_id,
        Event::TaskRetried(record) => record.task_id,
        Event::TaskEnded(record) => record.task_id,
        _ => return None,
    })
}

/// Decides what a record does to a task that stands somewhere, or says why it cannot follow. What is recorded of a run together
/// with its task is never refused, because the run's record would be refused with it: if it is late, it is ignored.
pub fn transition(before: Option<Standing>, event: &Event<'_>) -> Result<Transition, String> {
    use TaskStatus::{Cancelled, Failed, Pending, Running, WaitingInput};
    let open = before.filter(|standing| !standing.status.is_ended());
    let counted = |status: TaskStatus, attempt: u32, transitions: u32| {
        Ok(Transition::Changed(Standing { status, attempt, transitions: transitions.saturating_add(1) }))
    };
    let ended_before = |ended: &crate::event::EndedTask| match (before, ended.status) {
        (Some(known), _) if !known.status.is_ended() => Err(conflict(known.status, "ended")),
        (Some(known), _) if known.status != ended.status => {
            Err(conflict(known.status, ended.status.as_str()))
        }
        (_, Failed | Cancelled) => Ok(()),
        (_, other) => Err(conflict(other, "failed or cancelled")),
    };
    match event {
        Event::TaskCreated(_) if before.is_some() => Err("it was created before".into()),
        Event::TaskCreated(_) => counted(Pending, 0, 0),
        Event::TaskClaimed(claimed) => match before {
            Some(Standing { status: Pending, attempt, transitions }) if claimed.attempt == attempt + 1 => {
                counted(Running, claimed.attempt, transitions)
            }
            Some(Standing { status: Pending, .. }) => Err("another attempt is the next one".into()),
            standing => Err(conflict_of(standing, "pending")),
        },
        Event::TaskWaiting(waiting) => match open {
            Some(Standing { status: Running | WaitingInput, attempt, transitions })
                if attempt == waiting.attempt =>
            {
                counted(WaitingInput, attempt, transitions)
            }
            _ => Ok(Transition::Ignored),
        },
        Event::TaskResumed(resumed) => match (&resumed.ended, open) {
            (Some(ended), _) => {
                ended_before(ended)?;
                counted(Running, resumed.attempt, ended.transitions)
            }
            (None, Some(Standing { status: Running | WaitingInput, attempt, transitions }))
                if resumed.attempt >= attempt =>
            {
                counted(Running, resumed.attempt, transitions)
            }
            _ => Ok(Transition::Ignored),
        },
        Event::TaskRequeued(requeued) => match open {
            Some(Standing { status: Running | WaitingInput, attempt, transitions })
                if attempt == requeued.attempt =>
            {
                counted(Pending, attempt, transitions)
            }
            _ => Ok(Transition::Ignored),
        },
        Event::TaskChanged(_) | Event::TaskCancelRequested(_) => match open {
            Some(Standing { status, attempt, transitions }) => counted(status, attempt, transitions),
            None => Err(conflict_of(before, "open")),
        },
        Event::TaskRetried(retried) => {
            ended_before(&retried.ended)?;
            counted(Pending, retried.ended.attempt, retried.ended.transitions)
        }
        Event::TaskEnded(ended) if !ended.status.is_ended() => {
            Err(format!("{} is no end", ended.status.as_str()))
        }
        Event::TaskEnded(ended) => match open {
            Some(Standing { attempt, transitions, .. }) if attempt == ended.attempt => {
                counted(ended.status, attempt, transitions)
            }
            _ => Ok(Transition::Ignored),
        },
        // A newer version wrote it; it means nothing here.
        Event::Unknown { .. } => Ok(Transition::Ignored),
        _ => Err("it belongs into a session's log".into()),
    }
}

fn conflict(status: TaskStatus, expected: &str) -> String {
    format!("the task is {}, not {expected}", status.as_str())
}

fn conflict_of(standing: Option<Standing>, expected: &str) -> String {
    match standing {
        Some(standing) => conflict(standing.status, expected),
        None => format!("there is no such task that is {expected}"),
    }
}
