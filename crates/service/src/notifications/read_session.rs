//! The log of a session read for notifications: from where somebody last looked to where its state stands, and never more than that.

use std::io;
use std::sync::Arc;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::{Event, Kind, RunWaiting};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_notify::derive::{Derived, RunFacts, SessionLookup, SessionNotices};
use rekindle_notify::outbox::Cursor;
use rekindle_store::crash_report::at_work;
use rekindle_store::log::{Cursor as Place, LogReader};
use rekindle_store::{Store, Want};

use super::standing::Surroundings;
use crate::answer_links::question_line;
use crate::drive::live::fetch_payload;
use crate::log_search::find_last;

/// Records that are news and read at once: a bound for what is in memory.
const MOST_NEWS: usize = 500;

/// Where reading begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum From {
    /// At a record.
    Seq(u64),
    /// Behind what was read before, if the log still says the same.
    Behind(Cursor),
    /// At the first record that was written at a time or later.
    Time(Timestamp),
}

/// What the log of a session says.
pub(super) struct ReadSession {
    pub(super) state: Arc<SessionState>,
    pub(super) derived: Vec<Derived>,
    /// The last record that was read, and its hash.
    pub(super) seq: u64,
    pub(super) h: Option<ChainHash>,
    /// The last of them that is news: it survives a power cut.
    pub(super) sure: Option<u64>,
    /// There is more to read.
    pub(super) more: bool,
}

/// Reads the log of a session, through a record at least.
pub(super) fn read_session(
    around: &Surroundings,
    session: SessionId,
    from: &From,
    through: u64,
) -> io::Result<ReadSession> {
    let _at_work = at_work(session, "notify");
    let state = state_of(&around.store, session, through)?;
    let reader = around.store.reader(session)?;
    let lookup = Lookup { around, reader: &reader, state: &state };
    let mut notices = SessionNotices::new(&state, &lookup);
    let Begin { place, not_before, mut seq, mut h } = begin(&reader, &state, from)?;
    let (mut sure, mut news, mut lines) = (None, 0, reader.forward(place));
    while seq < state.last_seq && news < MOST_NEWS {
        let Some(raw) = lines.next()? else { break };
        // Behind what makes no sense nothing can be trusted; the end may be half a line.
        let Some(line) = Line::parse(raw.bytes).ok().filter(|_| raw.whole) else { break };
        if line.seq > state.last_seq {
            break;
        }
        (seq, h) = (line.seq, line.hash);
        if not_before.is_none_or(|time| line.time() >= time) {
            notices.push(&line);
        }
        if Kind::from_name(line.kind).is_some_and(Kind::is_news) {
            (sure, news) = (Some(line.seq), news + 1);
        }
    }
    if seq < through {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "its newest records are not in its log yet"));
    }
    let (more, derived) = (news >= MOST_NEWS && seq < state.last_seq, notices.finish());
    Ok(ReadSession { derived, seq, h, sure, more, state })
}

/// Returns the state of a session, which has come to a record at least.
fn state_of(store: &Store, session: SessionId, through: u64) -> io::Result<Arc<SessionState>> {
    let at_hand = store.at_hand(session).filter(|current| current.state.last_seq >= through);
    if let Some(current) = at_hand.or_else(|| store.current(session)) {
        return Ok(current.state);
    }
    let loaded = store.load(session, Want::Status).map_err(|error| match error {
        rekindle_store::LoadError::NotFound(_) => io::Error::new(io::ErrorKind::NotFound, error),
        error => io::Error::other(error),
    })?;
    Ok(Arc::new(loaded.state))
}

/// Where reading begins.
struct Begin {
    place: Place,
    /// Records that were written before this do not count.
    not_before: Option<Timestamp>,
    /// The record before it, as far as that is known.
    seq: u64,
    h: Option<ChainHash>,
}

fn begin(reader: &LogReader, state: &SessionState, from: &From) -> io::Result<Begin> {
    let at = |place: Place, seq: u64, h| Begin { place, not_before: None, seq, h };
    match from {
        From::Seq(seq) if *seq > state.last_seq => Ok(at(reader.end(), state.last_seq, state.last_hash)),
        From::Seq(seq) => Ok(at(reader.find(*seq)?.unwrap_or(Place::START), 0, None)),
        From::Time(time) => {
            let not_before = Some(*time);
            Ok(Begin { not_before, ..at(reader.find_time(*time)?, 0, None) })
        }
        From::Behind(cursor) => {
            if let Some(place) = behind(reader, cursor.seq, Some(cursor.h))? {
                return Ok(at(place, cursor.seq, cursor.h));
            }
            // A power cut took records that nobody had asked to survive one, and others are in their place.
            if let Some(place) = behind(reader, cursor.sure, None)? {
                return Ok(at(place, cursor.sure, None));
            }
            tracing::warn!(session = %state.id, "its log has a different history: no notifications are sent for what it has so far");
            Ok(at(reader.end(), state.last_seq, state.last_hash))
        }
    }
}

/// Returns the place behind a record, if the log has it, with a hash if that is known.
fn behind(reader: &LogReader, seq: u64, h: Option<Option<ChainHash>>) -> io::Result<Option<Place>> {
    if seq == 0 {
        return Ok(Some(Place::START));
    }
    let Some(found) = reader.find(seq)? else { return Ok(None) };
    let mut lines = reader.forward(found);
    let Some(raw) = lines.next()? else { return Ok(None) };
    let line = Line::parse(raw.bytes).ok();
    let is_same = line.is_some_and(|line| line.seq == seq && h.is_none_or(|h| h == line.hash));
    Ok(is_same.then_some(raw.end))
}

/// What the log says beyond its newest records.
struct Lookup<'a> {
    around: &'a Surroundings,
    reader: &'a LogReader,
    state: &'a SessionState,
}

impl SessionLookup for Lookup<'_> {
    fn run(&self, run: RunId) -> RunFacts {
        let mut facts = RunFacts::default();
        // Its beginning is the last that is found of it.
        let found = find_last(self.reader, |line| match line.kind {
            "run.started" | "run.cancel_requested" => match line.event().ok()? {
                Event::RunCancelRequested(asked) if asked.run_id == Some(run) => {
                    facts.cancel = Some(asked.why);
                    None
                }
                Event::RunStarted(started) if started.run_id == run => Some(started.task_id),
                _ => None,
            },
            _ => None,
        });
        facts.task_id = found.ok().flatten().flatten();
        facts
    }

    fn question(&self, waiting: &RunWaiting<'_>) -> Option<String> {
        let request = fetch_payload(&*self.around.store, waiting.request.as_ref()?).ok()?;
        question_line(&serde_json::from_str(request.as_json()).ok()?)
    }

    fn last_words(&self) -> Option<String> {
        self.around.log_details.of(&*self.around.store, self.state).last_words
    }
}
