//! The link of a run with its task: whatever ends or continues the run of a task is recorded together with what that means for the
//! task, by whomever it is recorded.

use rekindle_domain::event::Event;
use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Draft;
use rekindle_domain::task::compose;
use rekindle_domain::task::retry::RunSoFar;
use rekindle_store::Store;
use rekindle_store::commit::Append;

/// Adds to an append what its records mean for the task of the session's run. Most appends are passed on as they are.
pub(crate) fn with_task_records(store: &Store, append: Append) -> Append {
    let Some(session) = append.stream.session().filter(|_| append.records.iter().any(may_concern_task))
    else {
        return append;
    };
    match task_records(store, session, &append.records) {
        records if records.is_empty() => append,
        records => append.and(StreamId::tasks(), records),
    }
}

/// Tells whether a record may mean something for a task: it ends a run, or continues one.
fn may_concern_task(draft: &Draft) -> bool {
    match &draft.event {
        Event::RunStarted(started) => started.continues.is_some(),
        Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) => true,
        _ => false,
    }
}

fn task_records(store: &Store, session: SessionId, records: &[Draft]) -> Vec<Draft> {
    let current = store.at_hand(session).or_else(|| store.current(session));
    let Some(run) = current.as_ref().and_then(|current| RunSoFar::of(&current.state)) else {
        return Vec::new();
    };
    let Some(task_id) = run.run.task_id else { return Vec::new() };
    // Whoever comes first after a start reads the stream. One that is damaged can say nothing, and must keep no run from ending.
    let tasks = match store.open_tasks() {
        Ok(tasks) if tasks.damage.is_none() => tasks.fold,
        Ok(_) | Err(_) => return Vec::new(),
    };
    let Some(task) = tasks.get(task_id) else { return Vec::new() };
    let means = |draft: &Draft| compose::with_run(task, run, session, &draft.event);
    records.iter().filter_map(means).collect()
}
