//! The projection: what a record of the stream of tasks does to a task's row, and what its history says of it. Pure.

use rekindle_domain::event::{EndedTask, Event, TaskSpec, TaskStatus};
use rekindle_domain::id::TaskId;
use rekindle_domain::task::transition::{Standing, Transition, transition};
use rekindle_domain::time::Timestamp;
use serde_json::json;

use crate::row::{TaskRow, TransitionRow};

/// Whose tasks these are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The home.
    pub home_id: String,
    /// The machine.
    pub host: String,
}

/// Does to a task's row what a record says, and returns one line of its history. Nothing is done for a record that does not count, or
/// of a task of which there is no row although the record does not begin one.
pub fn project(
    owner: &Owner,
    task_id: TaskId,
    row: &mut Option<TaskRow>,
    event: &Event<'_>,
    at: Timestamp,
) -> Option<TransitionRow> {
    let standing = row.as_ref().map(TaskRow::standing);
    let Ok(Transition::Changed(now)) = transition(standing, event) else { return None };
    match event {
        Event::TaskCreated(created) => *row = Some(new_row(owner, task_id, &created.task, at)),
        Event::TaskRetried(retried) if row.is_none() => {
            *row = Some(brought_back(owner, task_id, &retried.ended));
        }
        Event::TaskResumed(resumed) if row.is_none() => {
            *row = Some(brought_back(owner, task_id, resumed.ended.as_deref()?));
        }
        _ => {}
    }
    let row = row.as_mut()?;
    change(row, event, at);
    let Standing { status, attempt, transitions } = now;
    (row.status, row.attempt, row.transitions, row.updated_at) = (status, attempt, transitions, at);
    row.ended_at = status.is_ended().then_some(at);
    let (actor, reason, metadata) = told(event);
    let from_status = standing.map(|standing| standing.status).or_else(|| ended_before(event));
    Some(TransitionRow {
        task_id,
        n: transitions,
        from_status,
        to_status: status,
        reason: reason.map(str::to_owned),
        actor: actor.to_owned(),
        at,
        metadata,
    })
}

/// Takes over what a record says beside where the task stands.
fn change(row: &mut TaskRow, event: &Event<'_>, at: Timestamp) {
    match event {
        Event::TaskClaimed(claimed) => {
            (row.session_id, row.run_id) = (Some(claimed.session_id), Some(claimed.run_id));
            row.started_at = Some(at);
            row.reason = claimed.reason.as_deref().map(str::to_owned);
            row.resume_prompt = claimed.resume_prompt.as_deref().map(str::to_owned);
        }
        Event::TaskWaiting(waiting) => row.reason = Some(waiting.reason.as_ref().into()),
        Event::TaskResumed(resumed) => {
            if resumed.attempt > row.attempt || row.started_at.is_none() {
                row.started_at = Some(at);
            }
            (row.session_id, row.run_id) = (Some(resumed.session_id), Some(resumed.run_id));
            row.reason = Some(resumed.reason.as_ref().into());
        }
        Event::TaskRequeued(requeued) => {
            row.not_before = Some(requeued.not_before(at));
            row.reason = Some(requeued.reason.as_ref().into());
        }
        Event::TaskChanged(changed) => {
            row.priority = changed.priority.unwrap_or(row.priority);
            // What a person is needed for stays the reason until it is done.
            if row.status != TaskStatus::WaitingInput {
                row.reason = changed.reason.as_deref().map(str::to_owned).or(row.reason.take());
            }
        }
        Event::TaskRetried(retried) => {
            row.not_before = None;
            row.reason = Some(retried.reason.as_ref().into());
        }
        Event::TaskEnded(ended) => row.reason = ended.reason.as_deref().map(str::to_owned),
        _ => {}
    }
}

/// Returns who did it, why, and what else a record says.
fn told<'a>(event: &'a Event<'_>) -> (&'a str, Option<&'a str>, Option<serde_json::Value>) {
    match event {
        Event::TaskCreated(record) => (&record.actor, None, None),
        Event::TaskClaimed(record) => {
            let what =
                json!({"attempt": record.attempt, "session_id": record.session_id, "run_id": record.run_id});
            (&record.actor, record.reason.as_deref(), Some(what))
        }
        Event::TaskWaiting(record) => (&record.actor, Some(&record.reason), None),
        Event::TaskResumed(record) => {
            let what =
                json!({"attempt": record.attempt, "session_id": record.session_id, "run_id": record.run_id});
            (&record.actor, Some(&record.reason), Some(what))
        }
        Event::TaskRequeued(record) => (
            &record.actor,
            Some(&record.reason),
            Some(json!({"delay_ms": record.delay_ms, "fresh": record.fresh})),
        ),
        Event::TaskChanged(record) => {
            let priority = record.priority.map(|priority| json!({"priority": priority}));
            (&record.actor, record.reason.as_deref(), priority)
        }
        Event::TaskCancelRequested(record) => {
            (&record.actor, Some(&record.reason), Some(json!({"cancel": record.status})))
        }
        Event::TaskRetried(record) => {
            (&record.actor, Some(&record.reason), Some(json!({"fresh": record.fresh})))
        }
        Event::TaskEnded(record) => (&record.actor, record.reason.as_deref(), None),
        _ => ("", None, None),
    }
}

/// Returns where a task stood that a record brings back.
fn ended_before(event: &Event<'_>) -> Option<TaskStatus> {
    match event {
        Event::TaskRetried(retried) => Some(retried.ended.status),
        Event::TaskResumed(resumed) => resumed.ended.as_ref().map(|ended| ended.status),
        _ => None,
    }
}

fn brought_back(owner: &Owner, task_id: TaskId, ended: &EndedTask) -> TaskRow {
    TaskRow {
        attempt: ended.attempt,
        session_id: ended.session_id,
        run_id: ended.run_id,
        priority: ended.priority.unwrap_or(ended.task.priority),
        ..new_row(owner, task_id, &ended.task, ended.created_at)
    }
}

fn new_row(owner: &Owner, task_id: TaskId, spec: &TaskSpec, created_at: Timestamp) -> TaskRow {
    TaskRow {
        task_id,
        home_id: owner.home_id.clone(),
        host: owner.host.clone(),
        kind: spec.kind,
        parent_id: spec.parent_id,
        title: spec.title.clone(),
        prompt: spec.prompt.as_json().to_owned(),
        working_dir: spec.working_dir.clone(),
        agent: spec.provider.clone(),
        agent_name: spec.provider.name(),
        options: spec.options.clone(),
        env_names: spec.env_names.clone(),
        branch: spec.worktree.as_ref().map(|worktree| worktree.branch.clone()),
        priority: spec.priority,
        not_before: spec.not_before,
        deadline_at: spec.deadline_at,
        max_attempts: spec.max_attempts,
        repeatable: spec.repeatable,
        budget: spec.budget,
        labels: spec.labels.clone(),
        after: spec.after.clone(),
        created_by: spec.created_by.clone(),
        idempotency_key: spec.idempotency_key.clone(),
        status: TaskStatus::Pending,
        reason: None,
        attempt: 0,
        session_id: None,
        run_id: None,
        resume_prompt: None,
        progress: None,
        files_touched: None,
        result: None,
        usage: None,
        exit: None,
        created_at,
        updated_at: created_at,
        started_at: None,
        ended_at: None,
        transitions: 0,
    }
}
