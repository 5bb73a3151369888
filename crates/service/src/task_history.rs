//! The history of a task, read from the log of the stream of tasks: nobody remembers those that have ended. A log is looked through from
//! its end, back to where somebody told the whole task: mostly that is not far.

use std::collections::{HashMap, HashSet};
use std::io;

use rekindle_domain::event::{EndedTask, Event, TaskStatus};
use rekindle_domain::id::TaskId;
use rekindle_domain::line::Line;
use rekindle_domain::task::transition::{Standing, Transition, task_of, transition};
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::Timestamp;
use rekindle_store::Store;
use rekindle_store::log::{Cursor, LogReader};

/// Lines that are looked at at once.
const AT_ONCE: usize = 256;

/// What the log says of one task.
pub(crate) struct TaskHistory {
    /// The task as it was before its newest end, or is.
    pub(crate) task: Task,
    /// Where it stands.
    pub(crate) standing: Standing,
    /// Why.
    pub(crate) reason: Option<String>,
    /// When it ended, if it has.
    pub(crate) ended_at: Option<Timestamp>,
}

impl TaskHistory {
    /// Returns the task as somebody must tell it who brings it back; none if it has not ended.
    pub(crate) fn task_ended(&self) -> Option<EndedTask> {
        let Standing { status, transitions, .. } = self.standing;
        status.is_ended().then(|| self.task.to_ended(status, self.reason.clone(), transitions))
    }
}

/// Reads what the log says of a task; none if it knows of none.
pub(crate) fn read_history(store: &Store, id: TaskId) -> io::Result<Option<TaskHistory>> {
    Ok(read_histories(store, &HashSet::from([id]))?.remove(&id))
}

/// Reads what the log says of some tasks.
pub(crate) fn read_histories(
    store: &Store,
    ids: &HashSet<TaskId>,
) -> io::Result<HashMap<TaskId, TaskHistory>> {
    let reader = match store.tasks_reader() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        reader => reader?,
    };
    let is_whole = |event: &Event<'_>| match event {
        Event::TaskCreated(_) | Event::TaskRetried(_) => true,
        Event::TaskResumed(resumed) => resumed.ended.is_some(),
        _ => false,
    };
    let lines = lines_about(&reader, ids, is_whole)?;
    let (mut state, mut standings) = (TasksState::default(), HashMap::new());
    let mut found: HashMap<TaskId, TaskHistory> = HashMap::new();
    for text in lines.iter().rev() {
        let Ok(line) = Line::parse(text) else { continue };
        let Ok(event) = line.event() else { continue };
        let Some(id) = task_of(&event) else { continue };
        let Ok(Transition::Changed(now)) = transition(standings.get(&id).copied(), &event) else { continue };
        standings.insert(id, now);
        let _ = state.apply(line.seq, line.time(), &event);
        match (state.get(id), &event) {
            (Some(task), _) => {
                let (task, reason) = (Task::clone(task), task.reason.clone());
                found.insert(id, TaskHistory { task, standing: now, reason, ended_at: None });
            }
            (None, Event::TaskEnded(ended)) => {
                if let Some(found) = found.get_mut(&id) {
                    (found.standing, found.ended_at) = (now, Some(line.time()));
                    found.reason = ended.reason.as_deref().map(str::to_owned);
                }
            }
            (None, _) => {}
        }
    }
    Ok(found)
}

/// Returns the tasks that ended because another did not end as they wanted, and have not been brought back, each with that other.
pub(crate) fn failed_by_dependency(store: &Store) -> io::Result<HashMap<TaskId, TaskId>> {
    let reader = match store.tasks_reader() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        reader => reader?,
    };
    let words = [&b"dependency: "[..], b"task.retried", b"task.resumed"];
    let finders = words.map(memchr::memmem::Finder::new);
    let mut failed = HashMap::new();
    let mut lines = reader.forward(Cursor::START);
    while let Some(raw) = lines.next()? {
        if finders.iter().all(|finder| finder.find(raw.bytes).is_none()) {
            continue;
        }
        let Ok(line) = Line::parse(raw.bytes) else { continue };
        match line.event() {
            Ok(Event::TaskEnded(ended)) if ended.status == TaskStatus::Failed => {
                let on = ended.reason.as_deref().and_then(|why| why.strip_prefix("dependency: "));
                if let Some(on) = on.and_then(|on| on.parse().ok()) {
                    failed.insert(ended.task_id, on);
                }
            }
            Ok(event @ (Event::TaskRetried(_) | Event::TaskResumed(_))) => {
                task_of(&event).and_then(|task| failed.remove(&task));
            }
            _ => {}
        }
    }
    Ok(failed)
}

/// Returns the lines of every record of a task, and where the log goes on behind them.
pub(crate) fn lines_of(store: &Store, task: TaskId) -> io::Result<(Vec<Vec<u8>>, Cursor)> {
    let reader = match store.tasks_reader() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Cursor::START)),
        reader => reader?,
    };
    let is_first = |event: &Event<'_>| matches!(event, Event::TaskCreated(_));
    let mut lines = lines_about(&reader, &HashSet::from([task]), is_first)?;
    lines.reverse();
    Ok((lines, reader.end()))
}

/// Returns the lines of a task's records behind a place of the log, and where the log goes on behind them.
pub(crate) fn lines_behind(store: &Store, task: TaskId, from: Cursor) -> io::Result<(Vec<Vec<u8>>, Cursor)> {
    let reader = store.tasks_reader()?;
    let finder = memchr::memmem::Finder::new(task.as_str());
    let (mut lines, mut next, mut found) = (reader.forward(from), from, Vec::new());
    while let Some(raw) = lines.next()?
        && raw.whole
    {
        next = raw.end;
        if finder.find(raw.bytes).is_some() && is_about(raw.bytes, task) {
            found.push(raw.bytes.to_vec());
        }
    }
    Ok((found, next))
}

fn is_about(text: &[u8], task: TaskId) -> bool {
    let line = Line::parse(text).ok();
    line.and_then(|line| task_of(&line.event().ok()?)) == Some(task)
}

/// Returns the lines about some tasks, the newest first, of each back to one that is its beginning.
fn lines_about(
    reader: &LogReader,
    ids: &HashSet<TaskId>,
    is_beginning: impl Fn(&Event<'_>) -> bool,
) -> io::Result<Vec<Vec<u8>>> {
    let mut wanted = ids.clone();
    // Most lines are about others, and need not be taken apart.
    let only = (ids.len() == 1).then(|| ids.iter().next()).flatten();
    let finder = only.map(|id| memchr::memmem::Finder::new(id.as_str()));
    let (mut found, mut end) = (Vec::new(), reader.end());
    while end > Cursor::START && !wanted.is_empty() {
        let lines = reader.last(end, AT_ONCE)?;
        let Some((first, _)) = lines.first() else { break };
        end = *first;
        for (_, text) in lines.into_iter().rev() {
            if finder.as_ref().is_some_and(|finder| finder.find(&text).is_none()) {
                continue;
            }
            let event = Line::parse(&text).ok().and_then(|line| line.event().ok());
            let Some(id) = event.as_ref().and_then(task_of).filter(|id| wanted.contains(id)) else {
                continue;
            };
            if event.as_ref().is_some_and(&is_beginning) {
                wanted.remove(&id);
            }
            found.push(text);
        }
    }
    Ok(found)
}
