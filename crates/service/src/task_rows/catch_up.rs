//! Catching up with the stream of tasks: the records behind the cursor become rows, in batches, each with the cursor that it brings
//! the database to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use rekindle_domain::event::{Event, TaskStatus};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::task::transition::task_of;
use rekindle_domain::time::Timestamp;
use rekindle_store::log::{Cursor as LogCursor, LogReader};
use rekindle_taskdb::project::{Owner, project};
use rekindle_taskdb::{Batch, Cursor, DbError, TaskDb, TaskRow};

use super::log_source::Logs;

/// Records of one batch.
pub(super) const AT_ONCE: usize = 1_000;

/// Why the database could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum CatchUpError {
    /// The database.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A log.
    #[error("a log cannot be read")]
    Log(#[source] io::Error),
}

/// Brings the database up to date with the stream; what it has of another history is forgotten first.
pub fn catch_up(logs: &dyn Logs, owner: &Owner, db: &mut TaskDb) -> Result<(), CatchUpError> {
    catch_up_to(logs, owner, db, u64::MAX)
}

/// The same, and goes no further than a record.
pub(crate) fn catch_up_to(
    logs: &dyn Logs,
    owner: &Owner,
    db: &mut TaskDb,
    last_seq: u64,
) -> Result<(), CatchUpError> {
    let stream = StreamId::tasks();
    let reader = match logs.tasks() {
        Ok(reader) => Some(reader),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(CatchUpError::Log(error)),
    };
    let known = db.cursor(&owner.home_id, stream.as_str())?;
    let mut from = match (&reader, known) {
        (_, None) => LogCursor::START,
        (Some(reader), Some(known)) => match behind(reader, &known).map_err(CatchUpError::Log)? {
            Some(cursor) => cursor,
            None => {
                tracing::warn!("the task database does not belong to this task log and is rewritten");
                db.forget(&owner.home_id)?;
                LogCursor::START
            }
        },
        (None, Some(_)) => {
            db.forget(&owner.home_id)?;
            LogCursor::START
        }
    };
    let Some(reader) = reader else { return Ok(()) };
    loop {
        let (texts, next) = read_lines(&reader, from)?;
        match batch(owner, db, &texts, last_seq)? {
            Some(batch) => db.write(&batch)?,
            None => return Ok(()),
        }
        from = next;
    }
}

/// Returns the place behind a record, if the log has it as the database does.
pub(super) fn behind(reader: &LogReader, known: &Cursor) -> io::Result<Option<LogCursor>> {
    if known.seq == 0 {
        return Ok(Some(LogCursor::START));
    }
    let Some(cursor) = reader.find(known.seq)? else { return Ok(None) };
    let mut lines = reader.forward(cursor);
    let Some(raw) = lines.next()? else { return Ok(None) };
    let line = Line::parse(raw.bytes).ok();
    let is_same = line.is_some_and(|line| line.seq == known.seq && hash(&line) == known.h);
    Ok(is_same.then_some(raw.end))
}

pub(super) fn hash(line: &Line<'_>) -> String {
    line.hash.map(|hash| hash.to_string()).unwrap_or_default()
}

/// Reads the lines of one batch; returns them, and where the next one begins.
pub(super) fn read_lines(
    reader: &LogReader,
    mut from: LogCursor,
) -> Result<(Vec<Vec<u8>>, LogCursor), CatchUpError> {
    let (mut lines, mut texts) = (reader.forward(from), Vec::new());
    while texts.len() < AT_ONCE
        && let Some(raw) = lines.next().map_err(CatchUpError::Log)?
        // The end of a log that is being written may be half a line.
        && raw.whole
    {
        texts.push(raw.bytes.to_vec());
        from = raw.end;
    }
    Ok((texts, from))
}

/// Returns the records up to one, as far as lines are records.
pub(super) fn parse_lines(texts: &[Vec<u8>], last_seq: u64) -> Vec<Line<'_>> {
    let lines = texts.iter().map_while(|text| Line::parse(text).ok());
    lines.take_while(|line| line.seq <= last_seq).collect()
}

/// Makes one batch of some lines of the log; none if there is nothing in them.
fn batch(owner: &Owner, db: &mut TaskDb, texts: &[Vec<u8>], last_seq: u64) -> Result<Option<Batch>, DbError> {
    let lines = parse_lines(texts, last_seq);
    let Some(last) = lines.last() else { return Ok(None) };
    let cursor = Cursor { seq: last.seq, h: hash(last), state: None };
    // What this version does not know is passed over, as by the fold.
    let records: Vec<(TaskId, Timestamp, Event<'_>)> = lines
        .iter()
        .filter_map(|line| {
            let event = line.event().ok()?;
            Some((task_of(&event)?, line.time(), event))
        })
        .collect();
    let is_new = |event: &Event<'_>| matches!(event, Event::TaskCreated(_));
    let new: HashSet<TaskId> =
        records.iter().filter(|(_, _, event)| is_new(event)).map(|(task, ..)| *task).collect();
    let old: BTreeSet<TaskId> =
        records.iter().map(|(task, ..)| *task).filter(|task| !new.contains(task)).collect();
    let old: Vec<TaskId> = old.into_iter().collect();
    let mut rows: HashMap<TaskId, Projected> = HashMap::with_capacity(new.len() + old.len());
    for row in db.tasks(&old)? {
        let left = Some((row.agent_name.clone(), row.status));
        rows.insert(row.task_id, Projected { row: Some(row), left, changed: false });
    }
    let mut transitions = Vec::with_capacity(records.len());
    for (task, at, event) in &records {
        let projected = rows.entry(*task).or_default();
        if let Some(line) = project(owner, *task, &mut projected.row, event, *at) {
            projected.changed = true;
            transitions.push(line);
        }
    }
    let (mut left, mut entered, mut tasks) = (Vec::new(), Vec::new(), Vec::with_capacity(rows.len()));
    for projected in rows.into_values().filter(|projected| projected.changed) {
        let Some(row) = projected.row else { continue };
        left.extend(projected.left);
        entered.push((row.agent_name.clone(), row.status));
        tasks.push(row);
    }
    let stream = StreamId::tasks().to_string();
    Ok(Some(Batch { home_id: owner.home_id.clone(), stream, left, entered, tasks, transitions, cursor }))
}

/// A task on its way through a batch.
#[derive(Default)]
struct Projected {
    row: Option<TaskRow>,
    /// Where it was counted before.
    left: Option<(String, TaskStatus)>,
    changed: bool,
}
