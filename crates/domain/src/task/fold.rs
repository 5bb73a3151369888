//! The fold of the stream of tasks: takes in one record after the other, and refuses what cannot follow.

use std::sync::Arc;

use super::state::{Task, TaskCancel, TasksState};
use super::transition::{Standing, Transition, task_of, transition};
use crate::event::{
    Dependency, DependencyCondition, EndedTask, Event, IllegalTransition, TaskCreated, TaskStatus,
};
use crate::id::TaskId;
use crate::session::MessageKey;
use crate::time::Timestamp;

impl TasksState {
    /// Takes in one event as record `seq`, written at `ts`.
    pub fn apply(&mut self, seq: u64, ts: Timestamp, event: &Event<'_>) -> Result<(), IllegalTransition> {
        self.take_in(seq, ts, event).map_err(|why| IllegalTransition { kind: event.name().to_owned(), why })
    }

    fn take_in(&mut self, seq: u64, ts: Timestamp, event: &Event<'_>) -> Result<(), String> {
        let known = task_of(event).and_then(|task| self.tasks.get(&task)).cloned();
        let Transition::Changed(standing) = transition(known.as_ref().map(|task| task.standing()), event)?
        else {
            return Ok(());
        };
        let task = match (event, known) {
            (Event::TaskCreated(created), _) => {
                if let Some(stored) = &created.task.idempotency_key {
                    self.add_key(MessageKey::new(stored, seq));
                }
                new_task(created, ts)
            }
            (Event::TaskRetried(retried), _) => {
                let mut task = brought_back(retried.task_id, &retried.ended, ts);
                (task.fresh, task.unmet) = (retried.fresh, retried.unmet.clone());
                task.reason = Some(retried.reason.as_ref().into());
                task
            }
            (Event::TaskResumed(resumed), known) => {
                let ended = || resumed.ended.as_ref().map(|ended| brought_back(resumed.task_id, ended, ts));
                let Some(mut task) = ended().or_else(|| known.as_deref().cloned()) else { return Ok(()) };
                if resumed.attempt > task.attempt || task.started_at.is_none() {
                    (task.earlier_ms, task.started_at) = (task.wall_ms_at(ts), Some(ts));
                }
                (task.session_id, task.run_id) = (Some(resumed.session_id), Some(resumed.run_id));
                task.reason = Some(resumed.reason.as_ref().into());
                task
            }
            (event, Some(known)) => changed(&known, ts, event),
            (_, None) => return Ok(()),
        };
        self.settle(Task { updated_at: ts, ..with_standing(task, standing) });
        Ok(())
    }

    /// Puts a task where it belongs: among those that have not ended, or nowhere, and then whoever waits for it learns that.
    fn settle(&mut self, task: Task) {
        if !task.status.is_ended() {
            return self.put(task);
        }
        self.take(task.id);
        for dependent in self.take_dependents(task.id) {
            let Some(dependent) = self.tasks.get(&dependent) else { continue };
            let mut dependent = Task::clone(dependent);
            let wanted = |one: &Dependency| one.task_id == task.id;
            let failed = dependent.unmet.iter().any(|one| wanted(one) && !is_met(one.condition, task.status));
            dependent.unmet.retain(|one| !wanted(one));
            if failed {
                dependent.failed_dependency = dependent.failed_dependency.or(Some(task.id));
            }
            if dependent.unmet.is_empty() {
                dependent.eligible_at = dependent.eligible_at.max(task.updated_at);
            }
            self.tasks.insert_mut(dependent.id, Arc::new(dependent));
        }
    }
}

/// Tells whether a task that ended so is what another waited for.
pub fn is_met(condition: DependencyCondition, ended: TaskStatus) -> bool {
    match condition {
        DependencyCondition::Completed => ended == TaskStatus::Completed,
        DependencyCondition::Ended => ended.is_ended(),
    }
}

fn with_standing(task: Task, standing: Standing) -> Task {
    let Standing { status, attempt, transitions } = standing;
    Task { status, attempt, transitions, ..task }
}

fn new_task(created: &TaskCreated<'_>, ts: Timestamp) -> Task {
    let spec = Arc::new((*created.task).clone());
    let unmet = spec.after.iter().filter(|one| !created.met.contains(&one.task_id)).copied().collect();
    Task { unmet, ..empty_task(created.task_id, spec, ts) }
}

fn empty_task(id: TaskId, spec: Arc<crate::event::TaskSpec>, created_at: Timestamp) -> Task {
    Task {
        id,
        status: TaskStatus::Pending,
        reason: None,
        attempt: 0,
        transitions: 0,
        last_end: None,
        session_id: None,
        earlier_sessions: Vec::new(),
        run_id: None,
        fresh: false,
        priority: spec.priority,
        not_before: spec.not_before,
        created_at,
        updated_at: created_at,
        started_at: None,
        earlier_ms: 0,
        eligible_at: created_at,
        cancel: None,
        unmet: Vec::new(),
        failed_dependency: None,
        spec,
    }
}

/// Returns a task that had ended, as somebody told it who brings it back at `ts`.
fn brought_back(id: TaskId, ended: &EndedTask, ts: Timestamp) -> Task {
    let spec = Arc::new(ended.task.clone());
    Task {
        attempt: ended.attempt,
        last_end: ended.reason.clone(),
        earlier_ms: ended.earlier_ms,
        session_id: ended.session_id,
        earlier_sessions: ended.earlier_sessions.clone(),
        run_id: ended.run_id,
        priority: ended.priority.unwrap_or(spec.priority),
        not_before: None,
        eligible_at: ts,
        ..empty_task(id, spec, ended.created_at)
    }
}

/// Returns a task with what one record says of it, but for where it stands.
fn changed(known: &Task, ts: Timestamp, event: &Event<'_>) -> Task {
    let mut task = known.clone();
    match event {
        Event::TaskClaimed(claimed) => {
            task.earlier_sessions.extend(task.session_id.filter(|before| *before != claimed.session_id));
            (task.session_id, task.run_id) = (Some(claimed.session_id), Some(claimed.run_id));
            (task.fresh, task.started_at) = (false, Some(ts));
            task.reason = claimed.reason.as_deref().map(str::to_owned);
        }
        Event::TaskWaiting(waiting) => task.reason = Some(waiting.reason.as_ref().into()),
        Event::TaskRequeued(requeued) => {
            task.earlier_ms = task.wall_ms_at(ts);
            (task.fresh, task.not_before) = (requeued.fresh, Some(requeued.not_before(ts)));
            task.eligible_at = ts;
            task.reason = Some(requeued.reason.as_ref().into());
            task.last_end = task.reason.clone();
        }
        Event::TaskChanged(changed) => {
            task.priority = changed.priority.unwrap_or(task.priority);
            // What a person is needed for stays the reason until it is done.
            if task.status != TaskStatus::WaitingInput {
                task.reason = changed.reason.as_deref().map(str::to_owned).or(task.reason);
            }
        }
        // A person's wish is not weakened by a rule that comes later.
        Event::TaskCancelRequested(asked)
            if task.cancel.as_ref().is_none_or(|before| before.status != TaskStatus::Cancelled) =>
        {
            let (actor, reason) = (asked.actor.as_ref().into(), asked.reason.as_ref().into());
            task.cancel = Some(TaskCancel { actor, reason, status: asked.status });
        }
        _ => {}
    }
    task
}
