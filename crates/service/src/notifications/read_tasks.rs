//! The log of the stream of tasks read for notifications, together with the tasks as they are behind its last record.

use std::io;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::Kind;
use rekindle_domain::id::TaskId;
use rekindle_domain::line::Line;
use rekindle_domain::task::TasksState;
use rekindle_notify::derive::{Derived, EndedTaskFacts, TaskLookup, TaskNotices};
use rekindle_store::Store;
use rekindle_store::log::Cursor as Place;

use crate::task_history::read_history;

/// What the log of tasks says.
pub(super) struct ReadTasks {
    pub(super) derived: Vec<Derived>,
    /// The tasks behind the last record that was read.
    pub(super) after: TasksState,
    /// The last record that was read, and its hash.
    pub(super) seq: u64,
    pub(super) h: Option<ChainHash>,
}

/// Reads the log of tasks behind a record; `before` are the tasks as they were there, if anybody knows.
pub(super) fn read_tasks(
    store: &Store,
    before: Option<TasksState>,
    behind: Option<u64>,
) -> io::Result<ReadTasks> {
    let tasks = store.open_tasks().map_err(io::Error::other)?;
    if let Some(damage) = &tasks.damage {
        return Err(io::Error::other(damage.detail.clone()));
    }
    let (after, position) = (tasks.fold.clone(), tasks.fold.position());
    let nothing = |derived| ReadTasks {
        derived,
        after: tasks.fold.clone(),
        seq: position.last_seq,
        h: position.last_hash,
    };
    // The first time there is nothing to tell: it begins now.
    let Some(behind) = behind.filter(|behind| *behind < position.last_seq) else {
        return Ok(nothing(Vec::new()));
    };
    let reader = store.tasks_reader()?;
    let lookup = Lookup(store);
    // Without those of before, what is still open is as it is now, and what has ended is looked up.
    let mut notices = TaskNotices::new(before.unwrap_or_else(|| after.clone()), &lookup);
    let mut lines = reader.forward(reader.find(behind.max(1))?.unwrap_or(Place::START));
    let mut reached = behind;
    while reached < position.last_seq {
        let Some(raw) = lines.next()? else { break };
        let Some(line) = Line::parse(raw.bytes).ok().filter(|_| raw.whole) else { break };
        if line.seq <= behind {
            continue;
        }
        reached = line.seq;
        if Kind::from_name(line.kind).is_some() {
            notices.push(&line);
        }
    }
    if reached < position.last_seq {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "its newest records are not in it yet"));
    }
    let derived = notices.finish(&after);
    Ok(nothing(derived))
}

struct Lookup<'a>(&'a Store);

impl TaskLookup for Lookup<'_> {
    fn task(&self, id: TaskId) -> Option<EndedTaskFacts> {
        let found = read_history(self.0, id).ok().flatten()?;
        let standing = found.standing;
        let ended = standing.status.is_ended().then_some((standing.status, standing.attempt));
        Some(EndedTaskFacts { task: found.task, ended })
    }
}
