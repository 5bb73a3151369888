//! What each agent said last, for lists. A log is looked through once, from its end; from then on only what was added
//! to it is read, because every view of a session shows this.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use rekindle_agent::connection::Delta;
use rekindle_agent::said::Voice;
use rekindle_domain::event::Event;
use rekindle_domain::id::{MessageId, SessionId};
use rekindle_domain::line::Line;
use rekindle_store::Store;
use rekindle_store::log::{Cursor, LogReader};

use crate::core::locked;
use crate::live::prompt::find_back;
use crate::shape::text;

/// Characters that are shown.
const SHOWN: usize = 160;

/// Bytes of what is being said that are kept: what is shown fits in, with room for blanks.
const TAIL: usize = 1024;

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
    look_back(log)?.words
}

/// The last words of every session that was shown.
#[derive(Debug, Default)]
pub(crate) struct LastWords {
    known: Mutex<HashMap<SessionId, Known>>,
}

impl LastWords {
    /// Returns the end of what an agent said last, in one line.
    pub(crate) fn of(&self, store: &Store, session: SessionId) -> Option<String> {
        let reader = store.reader(session).ok()?;
        let before = locked(&self.known).get(&session).filter(|known| known.from <= reader.end()).cloned();
        let now = match before {
            Some(known) => read_on(&reader, known).ok()?,
            None => look_back(&reader)?,
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

/// The end of the message that an agent is saying, or has said last: words that may be in no record yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spoken {
    message: Option<MessageId>,
    tail: String,
}

impl Spoken {
    /// Takes in what an agent says.
    pub(crate) fn note(&mut self, delta: &Delta) {
        if delta.voice != Voice::Agent {
            return;
        }
        if self.message != Some(delta.message_id) || delta.at == 0 {
            self.message = Some(delta.message_id);
            self.tail.clear();
        }
        self.tail.push_str(&delta.text);
        if self.tail.len() > 2 * TAIL {
            let from = self.tail.floor_char_boundary(self.tail.len() - TAIL);
            self.tail.drain(..from);
        }
    }

    /// Returns the end of it, in one line.
    pub(crate) fn words(&self) -> Option<String> {
        shown(&self.tail)
    }
}

/// Looks at what was added to a log.
fn read_on(reader: &LogReader, mut known: Known) -> io::Result<Known> {
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
            known.words = shown(&text(&said.content));
        }
    }
    Ok(known)
}

/// Looks through a log from its end. Its last line is read again the next time: it may not have been whole.
fn look_back(reader: &LogReader) -> Option<Known> {
    let found = find_back(reader, |event| match event {
        Event::MessageAgent(said) => Some(text(&said.content)),
        Event::SessionCreated(_) => Some(String::new()),
        _ => None,
    });
    let said = found.ok()??;
    let from = reader.last(reader.end(), 1).ok()?.first().map_or(Cursor::START, |(start, _)| *start);
    Some(Known { words: shown(&said), from })
}

/// Returns the end of a message in one line; none of an empty one.
fn shown(said: &str) -> Option<String> {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    let end: String = line.chars().skip(count.saturating_sub(SHOWN)).collect();
    (!end.is_empty()).then_some(end)
}
