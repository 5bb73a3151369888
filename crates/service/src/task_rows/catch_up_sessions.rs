//! Catching up with sessions: the records of their runs become rows, a batch of one session at a time, so that whoever asks something
//! meanwhile need not wait.

use std::collections::HashMap;
use std::io;

use rekindle_domain::id::{SessionId, StreamId, TaskId};
use rekindle_store::log::{Cursor as LogCursor, LogReader};
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Batch, Changes, Cursor, SessionProjection, TaskDb, TaskRow, tasks_begun};

use super::catch_up::{AT_ONCE, CatchUpError, behind, hash, parse_lines, read_lines};
use super::log_source::Logs;

/// How far the rows of a session have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// To the end of its log, or as far as that can be read.
    End,
    /// There is more to read.
    More,
    /// Not to its next run: that is of a task without a row.
    UnknownTask,
}

/// What is done about a run of a task that has no row: one that will have its row in a moment, or one whose row was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownTask {
    /// Nothing is written, until the rows of tasks are there.
    Wait,
    /// There will be no row, and nothing is said of the run.
    PassOver,
}

/// Writes one batch of what the log of a session has and the database has not, up to a record.
pub(crate) fn catch_up_session(
    logs: &dyn Logs,
    owner: &Owner,
    db: &mut TaskDb,
    session: SessionId,
    last_seq: u64,
    unknown: UnknownTask,
) -> Result<Reached, CatchUpError> {
    let home = &owner.home_id;
    let reader = match logs.session(session) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            db.forget_session(home, session)?;
            return Ok(Reached::End);
        }
        // One that cannot be read is told of elsewhere, and hides no other.
        Err(_) => return Ok(Reached::End),
    };
    let (mut projection, from) = match written(home, db, session, &reader)? {
        Some(found) => found,
        None => {
            db.forget_session(home, session)?;
            (SessionProjection::new(session), LogCursor::START)
        }
    };
    let (texts, _) = read_lines(&reader, from)?;
    let lines = parse_lines(&texts, last_seq);
    let before: HashMap<TaskId, TaskRow> =
        db.tasks(&projection.concerned(&lines))?.into_iter().map(|row| (row.task_id, row)).collect();
    if unknown == UnknownTask::Wait && tasks_begun(&lines).any(|task| !before.contains_key(&task)) {
        return Ok(Reached::UnknownTask);
    }
    let mut changes = Changes { rows: before.clone(), transitions: Vec::new() };
    let mut last = None;
    for line in &lines {
        // Behind a break nothing can be trusted.
        if projection.push(owner, line, &mut changes).is_err() {
            break;
        }
        last = Some(line);
    }
    let Some(last) = last else { return Ok(Reached::End) };
    let cursor = Cursor { seq: last.seq, h: hash(last), state: projection.to_json().ok() };
    let Changes { rows, transitions } = changes;
    let stream = StreamId::from(session);
    db.write(&Batch::new(owner, stream.as_str(), &before, rows, transitions, cursor))?;
    Ok(if texts.len() == AT_ONCE { Reached::More } else { Reached::End })
}

/// Returns the projection as it was written, and where in the log it goes on; none if there is none, or it is of another history.
fn written(
    home_id: &str,
    db: &mut TaskDb,
    session: SessionId,
    reader: &LogReader,
) -> Result<Option<(SessionProjection, LogCursor)>, CatchUpError> {
    let stream = StreamId::from(session);
    let Some(known) = db.cursor(home_id, stream.as_str())? else { return Ok(None) };
    let restored = known.state.as_deref().and_then(|state| SessionProjection::restore(state).ok());
    let Some(projection) = restored.filter(|restored| restored.position().last_seq == known.seq) else {
        return Ok(None);
    };
    let from = behind(reader, &known).map_err(CatchUpError::Log)?;
    Ok(from.map(|from| (projection, from)))
}
