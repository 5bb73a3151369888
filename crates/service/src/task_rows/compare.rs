//! Rows compared with the logs they were made of: the same records are made rows again, in a database of their own, and what both
//! have is looked at side by side.

use std::collections::HashSet;
use std::vec;

use rekindle_domain::event::TaskKind;
use rekindle_domain::id::{PipelineId, SessionId, StreamId, TaskId};
use rekindle_domain::time::Timestamp;
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Cursor, DbError, Sqlite, TaskCounts, TaskDb, TaskRow, TransitionRow};

use super::catch_up::{CatchUpError, catch_up_to};
use super::catch_up_pipelines::catch_up_pipeline;
use super::catch_up_sessions::{Reached, UnknownTask, catch_up_session};
use super::log_source::Logs;

/// Tasks that are read at once.
const AT_ONCE: usize = 500;

/// What rows say otherwise than the logs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// How many tasks they say something else of; none if only their counts are wrong.
    pub(crate) tasks: u64,
    /// What they say of the first.
    pub(crate) first: Option<String>,
}

/// Looks for what rows say otherwise than the logs. What is behind its log is compared as far as it has come, and what is of another
/// history than its log is left out, since whoever opens the database writes that anew. Rows of tasks that ended before `kept_since`
/// may be gone.
pub(crate) fn compare(
    logs: &dyn Logs,
    owner: &Owner,
    db: &mut TaskDb,
    kept_since: Timestamp,
    watcher: &mut dyn FnMut(u64, u64),
) -> Result<Differences, CatchUpError> {
    let home = &owner.home_id;
    let Some((mut rebuilt, left_out)) = rebuild(logs, owner, &db.cursors(home)?, watcher)? else {
        return Ok(Differences::default());
    };
    let mut differences = Differences::default();
    let mut counts = TaskCounts::new();
    let (mut found, mut right) = (Rows::new(db, home), Rows::new(&mut rebuilt, home));
    let (mut one, mut other) = (found.next()?, right.next()?);
    while let Some(task) = [&one, &other].into_iter().flatten().map(|(row, _)| row.task_id).min() {
        let is_of = |row: &Option<Found>| row.as_ref().is_some_and(|(row, _)| row.task_id == task);
        let there = if is_of(&one) { std::mem::replace(&mut one, found.next()?) } else { None };
        let wanted = if is_of(&other) { std::mem::replace(&mut other, right.next()?) } else { None };
        if let Some((row, _)) = &there {
            *counts.entry(row.agent_name.clone()).or_default().entry(row.status).or_default() += 1;
        }
        let mut streams = there.iter().chain(&wanted).filter_map(|(row, _)| stream_of(row));
        if streams.any(|stream| left_out.contains(&stream)) {
            continue;
        }
        if let Some(what) = difference(there.as_ref(), wanted.as_ref(), kept_since) {
            differences.tasks += 1;
            differences.first.get_or_insert(what);
        }
    }
    if db.counts(home)? != counts {
        differences.first.get_or_insert_with(|| "its counts do not match its rows".into());
    }
    Ok(differences)
}

/// Returns the stream beside that of tasks of whose records a row is made, if there is one.
fn stream_of(row: &TaskRow) -> Option<StreamId> {
    match row.kind {
        TaskKind::Pipeline => row.task_id.to_ulid().map(|ulid| PipelineId::from_ulid(ulid).into()),
        TaskKind::Task | TaskKind::Run => row.session_id.map(StreamId::from),
    }
}

/// Makes rows anew of the records that those at hand were made of; returns them, and the streams whose logs do not have these records.
/// None if the log of the tasks does not.
fn rebuild(
    logs: &dyn Logs,
    owner: &Owner,
    cursors: &[(String, Cursor)],
    watcher: &mut dyn FnMut(u64, u64),
) -> Result<Option<(TaskDb, HashSet<StreamId>)>, CatchUpError> {
    let mut rebuilt = TaskDb::open(Box::new(Sqlite::temporary()?))?;
    let mut left_out = HashSet::new();
    let is_reached = |rebuilt: &mut TaskDb, stream: &str, cursor: &Cursor| {
        let reached = rebuilt.cursor(&owner.home_id, stream)?;
        Ok::<_, DbError>(reached.is_some_and(|reached| (reached.seq, &reached.h) == (cursor.seq, &cursor.h)))
    };
    let tasks = StreamId::tasks();
    if let Some((stream, cursor)) = cursors.iter().find(|(stream, _)| stream == tasks.as_str()) {
        catch_up_to(logs, owner, &mut rebuilt, cursor.seq)?;
        if !is_reached(&mut rebuilt, stream, cursor)? {
            return Ok(None);
        }
    }
    for (done, (stream, cursor)) in (0..).zip(cursors) {
        watcher(done, cursors.len() as u64);
        let log = if let Ok(session) = stream.parse::<SessionId>() {
            let unknown = UnknownTask::PassOver;
            while catch_up_session(logs, owner, &mut rebuilt, session, cursor.seq, unknown)? == Reached::More
            {
            }
            StreamId::from(session)
        } else if let Ok(run) = stream.parse::<PipelineId>() {
            while catch_up_pipeline(logs, owner, &mut rebuilt, run, cursor.seq)? == Reached::More {}
            StreamId::from(run)
        } else {
            continue;
        };
        if !is_reached(&mut rebuilt, stream, cursor)? {
            left_out.insert(log);
        }
    }
    Ok(Some((rebuilt, left_out)))
}

type Found = (TaskRow, Vec<TransitionRow>);

/// Says what is the matter with a row, if anything is.
fn difference(there: Option<&Found>, wanted: Option<&Found>, kept_since: Timestamp) -> Option<String> {
    match (there, wanted) {
        (Some((row, history)), Some((right, right_history))) => {
            let (task, same_host) = (row.task_id, TaskRow { host: row.host.clone(), ..right.clone() });
            if row.status != right.status {
                let (is, should) = (row.status.as_str(), right.status.as_str());
                return Some(format!("it has {task} as {is} instead of {should}"));
            }
            let broken = right_history.iter().zip(history).find(|(right, line)| right != line);
            if let Some((line, _)) = broken {
                return Some(format!("line {} of the history of {task} is different", line.n));
            }
            if history.len() != right_history.len() {
                let (has, should) = (history.len(), right_history.len());
                return Some(format!("it has {has} lines of the history of {task} instead of {should}"));
            }
            (*row != same_host).then(|| format!("the row of {task} is different"))
        }
        (Some((row, _)), None) => Some(format!("it has {}, which no log mentions", row.task_id)),
        (None, Some((row, _))) if row.ended_at.is_none_or(|ended| ended >= kept_since) => {
            Some(format!("it does not have {}", row.task_id))
        }
        (None, _) => None,
    }
}

/// The rows of a database, one after the other.
struct Rows<'a> {
    db: &'a mut TaskDb,
    home_id: &'a str,
    page: vec::IntoIter<Found>,
    last: Option<TaskId>,
}

impl<'a> Rows<'a> {
    fn new(db: &'a mut TaskDb, home_id: &'a str) -> Rows<'a> {
        Rows { db, home_id, page: Vec::new().into_iter(), last: None }
    }

    fn next(&mut self) -> Result<Option<Found>, DbError> {
        if self.page.len() == 0 {
            self.page = self.db.tasks_behind(self.home_id, self.last, AT_ONCE)?.into_iter();
        }
        let next = self.page.next();
        self.last = next.as_ref().map(|(row, _)| row.task_id).or(self.last);
        Ok(next)
    }
}
