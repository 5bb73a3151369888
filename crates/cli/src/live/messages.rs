//! Messages as they come: words first, then the record that has them all. Nothing is shown twice, and nothing is left
//! out.

use std::collections::HashMap;

use super::piece::{Piece, line};
use crate::client::wire::Words;
use crate::output::DIM;
use crate::sanitise::Filter;

/// A message of which some words were shown.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    filter: Filter,
    /// Words were missed: the rest is shown when the message is whole.
    held: bool,
}

/// The messages that were begun.
#[derive(Debug, Default)]
pub(super) struct Messages {
    begun: HashMap<String, Shown>,
}

impl Messages {
    /// Words may have been missed: messages that were begun go on when they are whole.
    pub(super) fn missed(&mut self) {
        for shown in self.begun.values_mut() {
            shown.held = true;
        }
    }

    /// Takes words that are in no record yet.
    pub(super) fn words(&mut self, words: &Words) -> Option<Piece> {
        let shown = self.begun.entry(words.message_id.clone()).or_default();
        let new = match words.at {
            Some(at) if at <= shown.text.len() => {
                shown.held = false;
                words.text.get(shown.text.len() - at..).unwrap_or_default()
            }
            Some(_) => {
                shown.held = true;
                return None;
            }
            None if shown.held => return None,
            None => words.text.as_str(),
        };
        shown.text.push_str(new);
        let clean = shown.filter.push(new);
        let piece = if words.kind == "thought" { Piece::Thought } else { Piece::Answer };
        (!clean.is_empty()).then(|| piece(clean))
    }

    /// Shows of a whole message what was not shown yet.
    pub(super) fn whole(&mut self, id: &str, text: &str, piece: fn(String) -> Piece) -> Vec<Piece> {
        let mut shown = self.begun.remove(id).unwrap_or_default();
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
