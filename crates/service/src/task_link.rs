//! The link of a run with its task: whatever ends or continues the run of a task is recorded together with what that means for the
//! task, by whomever it is recorded. A person who goes on where a task failed or was cancelled goes on with the task.

use rekindle_domain::event::{EndedTask, Event, TaskEnded, TaskStatus};
use rekindle_domain::id::{SessionId, StreamId, TaskId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{End, Run};
use rekindle_domain::task::retry::RunSoFar;
use rekindle_domain::task::{Task, compose};
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::task_history::read_history;

/// Adds to an append what its records mean for the task of the session's run. Most appends are passed on as they are.
pub(crate) fn with_task_records(store: &Store, mut append: Append) -> Append {
    let Some(session) = append.stream.session().filter(|_| append.records.iter().any(may_concern_task))
    else {
        return append;
    };
    match task_records(store, session, &mut append.records) {
        records if records.is_empty() => append,
        records => append.and(StreamId::tasks(), records),
    }
}

/// Tells whether a record may mean something for a task: it ends a run, or begins one that no task has begun.
fn may_concern_task(draft: &Draft) -> bool {
    match &draft.event {
        Event::RunStarted(started) => started.continues.is_some() || started.task_id.is_none(),
        Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) => true,
        _ => false,
    }
}

fn task_records(store: &Store, session: SessionId, records: &mut [Draft]) -> Vec<Draft> {
    // Of a session that is just made nobody knows anything.
    if records.iter().any(|draft| matches!(draft.event, Event::SessionCreated(_))) {
        return Vec::new();
    }
    let current = store.at_hand(session).or_else(|| store.current(session));
    let Some(run) = current.as_ref().and_then(|current| RunSoFar::with_records(&current.state, records))
    else {
        return Vec::new();
    };
    let Some(task_id) = run.run.task_id else { return Vec::new() };
    // Whoever comes first after a start reads the stream. One that is damaged can say nothing, and must keep no run from ending.
    let tasks = match store.open_tasks() {
        Ok(tasks) if tasks.damage.is_none() => tasks.fold,
        Ok(_) | Err(_) => return Vec::new(),
    };
    let task = tasks.get(task_id).map(|task| &**task);
    let mut told: Vec<Draft> = Vec::new();
    for draft in records {
        let mut record = task.and_then(|task| compose::with_run(task, run, session, &draft.event));
        if record.is_none()
            && let Event::RunStarted(started) = &mut draft.event
            && let Some(before) = before_return(store, task_id, task, run.run, &told)
        {
            let attempt = match &before {
                Before::Open(task) => task.attempt,
                Before::Ended(ended) => ended.attempt,
            };
            (started.task_id, started.attempt) = (Some(task_id), attempt + 1);
            let ended = match before {
                Before::Open(_) => None,
                Before::Ended(ended) => Some(*ended),
            };
            record = Some(compose::bring_back(task_id, ended, session, started));
        }
        told.extend(record);
    }
    told
}

/// A task before somebody goes on with it.
enum Before<'a> {
    /// Its attempt was cut, and waited for a person.
    Open(&'a Task),
    /// It had ended.
    Ended(Box<EndedTask>),
}

/// Returns the task of a session's latest run, if a run that begins now goes on with it: its attempt was cut, or it failed, or
/// was cancelled, and nothing newer was begun of it. `told` is what is recorded of it together with that.
fn before_return<'a>(
    store: &Store,
    task_id: TaskId,
    task: Option<&'a Task>,
    run: &Run,
    told: &[Draft],
) -> Option<Before<'a>> {
    let Some(task) = task else {
        let failed = matches!(run.end, Some(End::Failed | End::Cancelled | End::Interrupted { .. }));
        let ended = failed.then(|| read_history(store, task_id).ok().flatten()?.task_ended()).flatten()?;
        let is_newest = ended.run_id == Some(run.run_id);
        let is_over = ended.status == TaskStatus::Completed || compose::is_ended_by_rule(&ended);
        return (is_newest && !is_over).then(|| Before::Ended(Box::new(ended)));
    };
    if task.run_id != Some(run.run_id) || task.cancel.is_some() {
        return None;
    }
    let ends_now = told.iter().find_map(|draft| match &draft.event {
        Event::TaskEnded(ended) => Some(ended),
        _ => None,
    });
    match ends_now {
        Some(TaskEnded { status: TaskStatus::Completed, .. }) => None,
        Some(TaskEnded { status, reason, .. }) => {
            let reason = reason.as_deref().map(str::to_owned);
            Some(Before::Ended(Box::new(task.to_ended(*status, reason, task.transitions + 1))))
        }
        None => matches!(run.end, Some(End::Interrupted { .. })).then_some(Before::Open(task)),
    }
}
