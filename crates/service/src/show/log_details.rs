//! What is shown of a session and is in its log alone: the agent's last words, and why the latest run ended. A log is looked
//! through once, from its end; from then on only what was added to it is read, and nothing as long as the session's state
//! tells that neither can have changed: every view of a session shows this.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use rekindle_domain::event::Event;
use rekindle_domain::id::{HolderId, RunId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::session::{Journal, SessionState};
use rekindle_domain::text_excerpt::last_line;
use rekindle_domain::time::Timestamp;
use rekindle_store::log::{Cursor, LogReader};

use super::run_view::run_end_reason;
use crate::lock::locked;
use crate::log_search::find_last_event;
use crate::storage::Sessions;

/// The record that has them.
const MESSAGE: &str = "message.agent";

/// What is known of a session.
#[derive(Debug, Clone, Default)]
struct Known {
    words: Option<String>,
    /// Where in the log what is not known yet begins: at the beginning of a line.
    from: Cursor,
    /// How far the agent's journal was logged when it was read: as long as that is so, the agent has said nothing more.
    heard: Option<Heard>,
    /// Why a run ended as it did, for the one that was looked for last.
    ended: Option<(RunEnd, Option<String>)>,
}

/// A place in an agent's journal, and whose.
type Heard = Option<(HolderId, Journal)>;

fn heard(state: &SessionState) -> Heard {
    state.agent.as_ref().map(|agent| (agent.holder_id, agent.journal))
}

/// An end of a run; one that is resumed ends again.
type RunEnd = (RunId, u32, Option<Timestamp>);

fn run_end(state: &SessionState) -> Option<RunEnd> {
    let run = state.run.as_ref().filter(|run| run.end.is_some())?;
    Some((run.run_id, run.attempt, run.ended_at))
}

/// What a view shows that is in the log alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// The end of what the agent said last, in one line.
    pub(crate) last_words: Option<String>,
    /// Why the latest run ended as it did.
    pub(crate) run_end: Option<String>,
}

/// Returns the end of what an agent said last, in one line, as its log has it.
pub fn last_words(log: &LogReader) -> Option<String> {
    read_last(log)?.words
}

/// The details of every session that was shown.
#[derive(Debug, Default)]
pub(crate) struct LogDetails {
    known: Mutex<HashMap<SessionId, Known>>,
}

impl LogDetails {
    /// Returns the details of a session if nothing has to be read for them.
    pub(crate) fn at_hand(&self, state: &SessionState) -> Option<Details> {
        let known = locked(&self.known);
        let known = known.get(&state.id).filter(|known| known.heard == Some(heard(state)))?;
        let run_end = match run_end(state) {
            Some(end) => known.ended.as_ref().filter(|(of, _)| *of == end)?.1.clone(),
            None => None,
        };
        Some(Details { last_words: known.words.clone(), run_end })
    }

    /// Returns the details of a session; what is not known of them is read.
    pub(crate) fn of(&self, store: &dyn Sessions, state: &SessionState) -> Details {
        if let Some(details) = self.at_hand(state) {
            return details;
        }
        let Ok(reader) = store.reader(state.id) else { return Details::default() };
        let end = run_end(state);
        let why = end.and_then(|_| run_end_reason(state, &reader));
        let before = locked(&self.known).get(&state.id).filter(|known| known.from <= reader.end()).cloned();
        let now = match before {
            Some(known) => read_added(&reader, known).ok(),
            None => read_last(&reader),
        };
        let last_words = now.as_ref().and_then(|now| now.words.clone());
        if let Some(now) = now {
            let (heard, ended) = (Some(heard(state)), end.map(|end| (end, why.clone())));
            let mut known = locked(&self.known);
            let there = known.entry(state.id).or_default();
            // Others may have looked meanwhile, and further.
            if there.from <= now.from {
                *there = Known { heard, ended, ..now };
            }
        }
        Details { last_words, run_end: why }
    }

    /// A session is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        locked(&self.known).remove(&session);
    }
}

/// Looks at what was added to a log.
fn read_added(reader: &LogReader, mut known: Known) -> io::Result<Known> {
    let mut lines = reader.forward(known.from);
    while let Some(line) = lines.next()? {
        // Half a line at the end may still be being written.
        if !line.whole && line.end >= reader.end() {
            break;
        }
        known.from = line.end;
        if let Ok(parsed) = Line::parse(line.bytes)
            && parsed.kind == MESSAGE
            && let Ok(Event::MessageAgent(said)) = parsed.event()
        {
            known.words = last_line(&said.content.plain_text());
        }
    }
    Ok(known)
}

/// Looks through a log from its end. Its last line is read again the next time: it may not have been whole.
fn read_last(reader: &LogReader) -> Option<Known> {
    let found = find_last_event(reader, |event| match event {
        Event::MessageAgent(said) => Some(said.content.plain_text()),
        Event::SessionCreated(_) => Some(String::new()),
        _ => None,
    });
    let said = found.ok()??;
    let from = reader.last(reader.end(), 1).ok()?.first().map_or(Cursor::START, |(start, _)| *start);
    Some(Known { words: last_line(&said), from, ..Known::default() })
}
