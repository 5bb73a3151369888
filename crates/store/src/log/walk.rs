//! Folding a log from some place to its end, and telling how it ends: clean, torn, or damaged.

use std::fmt;
use std::io;

use rekindle_domain::line::Line;
use rekindle_domain::session::{Position, Problem, Replay};
use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::Cursor;
use super::reader::LogReader;

/// Bytes at the end that never became records: a crash in the middle of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Where they begin: the end of the last whole list.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
    /// Whole records are among them, of a list whose end is missing.
    pub half_list: bool,
}

impl Torn {
    /// Returns where the last whole list ends.
    pub fn begin(&self) -> Cursor {
        Cursor::at(self.offset)
    }
}

/// A place in a log that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Damage {
    /// The byte where it begins.
    pub offset: u64,
    /// What is wrong.
    pub detail: String,
}

impl Damage {
    /// Returns where it begins.
    pub fn begin(&self) -> Cursor {
        Cursor::at(self.offset)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.detail)
    }
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the end of the file, after a whole list.
    End,
    /// Before bytes that never counted.
    Torn(Torn),
    /// Before a bad stretch with records behind it.
    Damaged(Damage),
}

/// What a log is folded into, line by line.
pub(crate) trait Replays {
    /// Returns how far it has come.
    fn position(&self) -> Position;
    /// Returns the end of the last whole list.
    fn whole(&self) -> Position;
    /// Takes in one line that ends at byte `end` of the log.
    fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem>;
}

impl Replays for Replay {
    fn position(&self) -> Position {
        self.position()
    }

    fn whole(&self) -> Position {
        self.whole
    }

    fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        self.push(line, end)
    }
}

/// Folds everything behind the replay's position into it, at most up to `end`.
///
/// At half a list the replay stands behind its last record; its `whole` says where it may be cut.
pub(crate) fn walk(reader: &LogReader, replay: &mut Replay, end: u64) -> io::Result<Stop> {
    let stop = walk_each(reader, replay, end, &mut |_, _| {})?;
    replay.settle();
    Ok(stop)
}

/// The same, and shows each record to `each` once it is taken in.
pub(crate) fn walk_each<R: Replays>(
    reader: &LogReader,
    replay: &mut R,
    end: u64,
    each: &mut dyn FnMut(&R, &Line<'_>),
) -> io::Result<Stop> {
    let mut lines = reader.forward(Cursor::at(replay.position().log_offset));
    while let Some(raw) = lines.next()? {
        if raw.start.offset() >= end {
            break;
        }
        let problem = match Line::parse(raw.bytes) {
            Ok(line) if raw.whole => match replay.push(&line, raw.end.offset()) {
                Ok(()) => {
                    each(replay, &line);
                    continue;
                }
                Err(problem) => problem,
            },
            Ok(_) => Problem::BadLine(rekindle_domain::line::BadLine::NotRecord("it has no end".into())),
            Err(problem) => Problem::BadLine(problem),
        };
        let (start, last_seq) = (raw.start.offset(), replay.position().last_seq);
        // Numbers that do not fit are no accident of a crash: both records are whole.
        let misplaced = raw.whole && !matches!(problem, Problem::BadLine(_) | Problem::Hash { .. });
        while let Some(raw) = lines.next()? {
            let later = Line::parse(raw.bytes).is_ok_and(|line| line.hash.is_some() && line.seq > last_seq);
            if raw.whole && later {
                return Ok(Stop::Damaged(Damage { offset: start, detail: problem.to_string() }));
            }
        }
        if misplaced {
            return Ok(Stop::Damaged(Damage { offset: start, detail: problem.to_string() }));
        }
        return Ok(Stop::Torn(torn(replay, reader.len())));
    }
    if replay.whole() == replay.position() {
        Ok(Stop::End)
    } else {
        Ok(Stop::Torn(torn(replay, reader.len())))
    }
}

fn torn(replay: &impl Replays, len: u64) -> Torn {
    let offset = replay.whole().log_offset;
    Torn { offset, len: len.saturating_sub(offset), half_list: replay.whole() != replay.position() }
}
