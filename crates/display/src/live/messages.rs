//! Messages as they come: words first, then the record that has them all. Nothing is shown twice, and nothing is left
//! out.

use std::collections::{HashMap, VecDeque};

use rekindle_terminal::output::DIM;
use rekindle_terminal::sanitise::Filter;
use rekindle_wire::event::{Delta, DeltaKind};

use super::piece::{Piece, line};

/// A message of which some words were shown.
#[derive(Debug, Default)]
struct PartlyShown {
    text: String,
    filter: Filter,
}

/// Messages whose words may still be on their way when their record was heard: a stream that is taken up again may tell
/// of the last few once more.
const MAX_DONE: usize = 64;

/// The messages that were begun, one of which is being shown.
#[derive(Debug, Default)]
pub(super) struct Messages {
    begun: HashMap<String, PartlyShown>,
    /// The one whose words are shown as they come.
    open: Option<String>,
    /// Words of those behind it: they may be heard before the record that ends it.
    later: VecDeque<Delta>,
    /// The last ones that were shown whole.
    done: VecDeque<String>,
}

impl Messages {
    /// Words may have been missed: those that wait are told again, or are in the record.
    pub(super) fn forget_waiting(&mut self) {
        self.later.clear();
    }

    /// Takes words that are in no record yet. Those of a message behind the one that is shown wait for its end. The
    /// first ones of a message wait for whatever is heard next: that may be the end of one that nobody heard of.
    pub(super) fn add_delta(&mut self, words: Delta) -> Vec<Piece> {
        if self.done.contains(&words.message_id) {
            return Vec::new();
        }
        let goes_on = match &self.open {
            Some(open) => *open == words.message_id,
            None => !self.later.is_empty(),
        };
        self.later.push_back(words);
        if goes_on { self.show_waiting() } else { Vec::new() }
    }

    /// Tells whether words wait for what is heard next.
    pub(super) fn waits(&self) -> bool {
        self.open.is_none() && !self.later.is_empty()
    }

    /// Goes on with words that waited; those of one message at a time.
    pub(super) fn show_waiting(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for words in std::mem::take(&mut self.later) {
            match &self.open {
                Some(open) if *open != words.message_id => self.later.push_back(words),
                _ => pieces.extend(self.show_delta(&words)),
            }
        }
        pieces
    }

    /// No message that was begun gets any more words.
    pub(super) fn over(&mut self) {
        self.open = None;
    }

    fn show_delta(&mut self, words: &Delta) -> Option<Piece> {
        self.open = Some(words.message_id.clone());
        let shown = self.begun.entry(words.message_id.clone()).or_default();
        // Those behind a gap are shown when the message is whole.
        let known = shown.text.len().checked_sub(words.at)?;
        let new = words.text.get(known..).unwrap_or_default();
        shown.text.push_str(new);
        let clean = shown.filter.push(new);
        let piece = if words.kind == DeltaKind::Thought { Piece::Thought } else { Piece::Answer };
        (!clean.is_empty()).then(|| piece(clean))
    }

    /// Shows of a whole message what was not shown yet.
    pub(super) fn finish(&mut self, id: &str, text: &str, piece: fn(String) -> Piece) -> Vec<Piece> {
        let mut shown = self.begun.remove(id).unwrap_or_default();
        self.open.take_if(|open| open == id);
        self.later.retain(|words| words.message_id != id);
        self.done.push_back(id.to_owned());
        self.done.drain(..self.done.len().saturating_sub(MAX_DONE));
        let mut pieces = Vec::new();
        let rest = match text.strip_prefix(shown.text.as_str()) {
            Some(rest) => rest,
            // Its beginning was missed, and what was shown cannot be taken back.
            None => {
                shown.filter = Filter::default();
                pieces.push(line(DIM, "(the message again, from its beginning)"));
                text
            }
        };
        let mut clean = shown.filter.push(rest);
        clean.push_str(shown.filter.finish());
        if !clean.is_empty() {
            pieces.push(piece(clean));
        }
        pieces
    }
}
