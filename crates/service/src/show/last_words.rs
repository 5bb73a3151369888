//! The last words of each agent, for lists. A log is looked through once, from its end; from then on only what was added
//! to it is read, because every view of a session shows this.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use rekindle_agent::exec::plain_text;
use rekindle_domain::event::Event;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::log::{Cursor, LogReader};

use crate::drive::worker::last_line;
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
}

/// Returns the end of what an agent said last, in one line, as its log has it.
pub fn last_words(log: &LogReader) -> Option<String> {
    read_last(log)?.words
}

/// The last words of every session that was shown.
#[derive(Debug, Default)]
pub(crate) struct LastWords {
    known: Mutex<HashMap<SessionId, Known>>,
}

impl LastWords {
    /// Returns the end of what an agent said last, in one line.
    pub(crate) fn of(&self, store: &dyn Sessions, session: SessionId) -> Option<String> {
        let reader = store.reader(session).ok()?;
        let before = locked(&self.known).get(&session).filter(|known| known.from <= reader.end()).cloned();
        let now = match before {
            Some(known) => read_added(&reader, known).ok()?,
            None => read_last(&reader)?,
        };
        let words = now.words.clone();
        let mut known = locked(&self.known);
        let there = known.entry(session).or_default();
        // Others may have looked meanwhile, and further.
        if there.from <= now.from {
            *there = now;
        }
        words
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
            known.words = last_line(&plain_text(&said.content));
        }
    }
    Ok(known)
}

/// Looks through a log from its end. Its last line is read again the next time: it may not have been whole.
fn read_last(reader: &LogReader) -> Option<Known> {
    let found = find_last_event(reader, |event| match event {
        Event::MessageAgent(said) => Some(plain_text(&said.content)),
        Event::SessionCreated(_) => Some(String::new()),
        _ => None,
    });
    let said = found.ok()??;
    let from = reader.last(reader.end(), 1).ok()?.first().map_or(Cursor::START, |(start, _)| *start);
    Some(Known { words: last_line(&said), from })
}
