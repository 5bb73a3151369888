//! Catching up with sessions: the records of their runs become rows, a batch of one session at a time, so that whoever asks something
//! meanwhile need not wait.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use rekindle_domain::id::{SessionId, StreamId, TaskId};
use rekindle_domain::line::Line;
use rekindle_store::log::{Cursor as LogCursor, LogReader};
use rekindle_taskdb::{Batch, Changes, Cursor, SessionProjection, TaskDb, TaskRow};

use super::Tools;
use super::catch_up::{AT_ONCE, CatchUpError, behind, hash};

/// How far the rows of a session have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// To the end of its log, or as far as that can be read.
    End,
    /// There is more to read.
    More,
}

/// Returns the sessions whose rows are behind their logs; what rows say of sessions that are gone is forgotten.
pub(super) fn find_behind(tools: &Tools, db: &mut TaskDb) -> Result<BTreeSet<SessionId>, CatchUpError> {
    let home = &tools.owner.home_id;
    let known: HashMap<String, Cursor> = db.cursors(home)?.into_iter().collect();
    let all = tools.directory.all(&*tools.store);
    let there: HashSet<&str> = all.iter().map(|entry| entry.state.id.as_str()).collect();
    let gone = known.keys().filter(|stream| !there.contains(stream.as_str()));
    for session in gone.filter_map(|stream| stream.parse::<SessionId>().ok()) {
        db.forget_session(home, session)?;
    }
    let is_behind = |state: &rekindle_domain::session::SessionState| {
        let h = state.last_hash.map(|hash| hash.to_string()).unwrap_or_default();
        known.get(state.id.as_str()).is_none_or(|cursor| (cursor.seq, &cursor.h) != (state.last_seq, &h))
    };
    let states = all.iter().map(|entry| &entry.state).filter(|state| is_behind(state));
    Ok(states.map(|state| state.id).collect())
}

/// Writes one batch of what the log of a session has and the database has not.
pub(super) fn catch_up_session(
    tools: &Tools,
    db: &mut TaskDb,
    session: SessionId,
) -> Result<Reached, CatchUpError> {
    let home = &tools.owner.home_id;
    let reader = match tools.store.reader(session) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            db.forget_session(home, session)?;
            return Ok(Reached::End);
        }
        // One that cannot be read is told of elsewhere, and hides no other.
        Err(_) => return Ok(Reached::End),
    };
    let (mut projection, from) = match written(tools, db, session, &reader)? {
        Some(found) => found,
        None => {
            db.forget_session(home, session)?;
            (SessionProjection::new(session), LogCursor::START)
        }
    };
    let (texts, reached) = read_lines(&reader, from).map_err(CatchUpError::Log)?;
    let lines: Vec<Line<'_>> = texts.iter().map_while(|text| Line::parse(text).ok()).collect();
    let before: HashMap<TaskId, TaskRow> =
        db.tasks(&projection.concerned(&lines))?.into_iter().map(|row| (row.task_id, row)).collect();
    let mut changes = Changes { rows: before.clone(), transitions: Vec::new() };
    let mut last = None;
    for line in &lines {
        // Behind a break nothing can be trusted.
        if projection.push(&tools.owner, line, &mut changes).is_err() {
            break;
        }
        last = Some(line);
    }
    let Some(last) = last else { return Ok(Reached::End) };
    let cursor = Cursor { seq: last.seq, h: hash(last), state: projection.to_json().ok() };
    let Changes { rows, transitions } = changes;
    db.write(&Batch::new(
        &tools.owner,
        StreamId::from(session).as_str(),
        &before,
        rows,
        transitions,
        cursor,
    ))?;
    Ok(reached)
}

/// Returns the projection as it was written, and where in the log it goes on; none if there is none, or it is of another history.
fn written(
    tools: &Tools,
    db: &mut TaskDb,
    session: SessionId,
    reader: &LogReader,
) -> Result<Option<(SessionProjection, LogCursor)>, CatchUpError> {
    let stream = StreamId::from(session);
    let Some(known) = db.cursor(&tools.owner.home_id, stream.as_str())? else { return Ok(None) };
    let restored = known.state.as_deref().and_then(|state| SessionProjection::restore(state).ok());
    let Some(projection) = restored.filter(|restored| restored.position().last_seq == known.seq) else {
        return Ok(None);
    };
    let from = behind(reader, &known).map_err(CatchUpError::Log)?;
    Ok(from.map(|from| (projection, from)))
}

fn read_lines(reader: &LogReader, from: LogCursor) -> io::Result<(Vec<Vec<u8>>, Reached)> {
    let mut read = reader.forward(from);
    let mut lines = Vec::new();
    while let Some(raw) = read.next()?
        // The end of a log that is being written may be half a line.
        && raw.whole
    {
        lines.push(raw.bytes.to_vec());
        if lines.len() == AT_ONCE {
            return Ok((lines, Reached::More));
        }
    }
    Ok((lines, Reached::End))
}
