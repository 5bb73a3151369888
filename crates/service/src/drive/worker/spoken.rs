//! The end of what an agent says, kept while it is said: it may be in no record yet.

use rekindle_agent::connection::Delta;
use rekindle_agent::said::Voice;
use rekindle_domain::id::MessageId;
use rekindle_domain::text_excerpt::last_line;

/// Bytes of what is being said that are kept: what is shown fits in, with room for blanks.
const TAIL: usize = 1024;

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
    pub(crate) fn last_line(&self) -> Option<String> {
        last_line(&self.tail)
    }
}
