//! Folding a log from some place to its end, and telling how it ends: clean, torn, or damaged.

use std::io;

use rekindle_domain::line::Line;
use rekindle_domain::session::{Position, Problem, Replay};

use super::chain::broken_between;
use super::cursor::Cursor;
use super::damage::{Damage, Torn};
use super::reader::LogReader;
use crate::crash_report::at_work;

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

/// From so many bytes on another thread is worth its start.
pub(super) const LONG: u64 = 1 << 20;

/// Folds everything behind the replay's position into it, at most up to `end`.
///
/// At half a list the replay stands behind its last record; its `whole` says where it may be cut.
pub(crate) fn walk(reader: &LogReader, replay: &mut Replay, end: u64) -> io::Result<Stop> {
    let left = reader.len().min(end).saturating_sub(replay.position().log_offset);
    let stop = match if left < LONG { None } else { walk_unverified(reader, replay, end)? } {
        Some(stop) => stop,
        None => walk_each(reader, replay, end, &mut |_, _| {})?,
    };
    replay.settle();
    Ok(stop)
}

/// Folds a long stretch while another thread verifies its hashes, which take as long as all the rest. If one of them does not
/// fit, or there is no other thread, the replay is left as it was.
fn walk_unverified(reader: &LogReader, replay: &mut Replay, end: u64) -> io::Result<Option<Stop>> {
    let (session, from) = (replay.state.id, replay.position());
    let (mut folded, mut broken) = (Unverified(replay.clone()), Ok(None));
    let stop = std::thread::scope(|scope| {
        let verify = || {
            let _at_work = at_work(session, "load");
            broken = broken_between(reader, session, from, end);
        };
        let verifying = std::thread::Builder::new().name("verify".into()).spawn_scoped(scope, verify);
        verifying.ok().map(|_| walk_each(reader, &mut folded, end, &mut |_, _| {})).transpose()
    })?;
    // A line that was not folded is one that nobody vouches for.
    if broken?.is_some_and(|broken| broken.offset < folded.position().log_offset) {
        return Ok(None);
    }
    *replay = folded.0;
    Ok(stop)
}

/// A replay of records whose hashes are verified by somebody else.
struct Unverified(Replay);

impl Replays for Unverified {
    fn position(&self) -> Position {
        self.0.position()
    }

    fn whole(&self) -> Position {
        self.0.whole
    }

    fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        self.0.push_unverified(line, end)
    }
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
