//! Checking that the records of a log follow each other, without taking them in: what a snapshot has passed is read again
//! by nobody else.

use std::io;

use rekindle_domain::id::SessionId;
use rekindle_domain::line::{BadLine, Line};
use rekindle_domain::session::{Position, Problem};

use super::cursor::Cursor;
use super::damage::Damage;
use super::reader::LogReader;

/// Finds the first record before `end` that does not follow the one before it.
pub(crate) fn broken_before(reader: &LogReader, session: SessionId, end: u64) -> io::Result<Option<Damage>> {
    broken_between(reader, session, Position::default(), end)
}

/// The same from a record on that was checked before.
pub(crate) fn broken_between(
    reader: &LogReader,
    session: SessionId,
    mut at: Position,
    end: u64,
) -> io::Result<Option<Damage>> {
    let mut lines = reader.forward(Cursor::at(at.log_offset));
    while let Some(raw) = lines.next()?.filter(|raw| raw.start.offset() < end) {
        let next = match Line::parse(raw.bytes) {
            Ok(line) if raw.whole => at.after(session, &line, raw.end.offset()),
            Ok(_) => Err(Problem::BadLine(BadLine::NotRecord("it has no end".into()))),
            Err(bad) => Err(Problem::BadLine(bad)),
        };
        match next {
            Ok(next) => at = next,
            Err(problem) => {
                return Ok(Some(Damage { offset: raw.start.offset(), detail: problem.to_string() }));
            }
        }
    }
    Ok(None)
}
