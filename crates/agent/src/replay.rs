//! What an agent told when a session was brought back, compared with what our log says of it.
//!
//! A load proves nothing by itself: some agents answer it with success and an empty conversation. So what it replays is kept
//! apart and compared (`compare.rs`) with what the log says should be there (`expected.rs`). What it tells beyond that was done
//! where nobody saw it, and is recorded (`unrecorded.rs`).

mod compare;
mod expected;
mod unrecorded;

use rekindle_domain::event::UncertainTool;

use crate::said::{Voice, is_over};

pub use compare::{Verdict, compare};
pub use expected::{Cut, ExpectedTurn, Spoken};
pub use unrecorded::{Unrecorded, beyond};

/// What was said again while a session was brought back, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Texts and tool calls.
    pub pieces: Vec<Piece>,
}

/// A piece of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Part of a message.
    Text {
        /// Whose words.
        voice: Voice,
        /// The words.
        text: String,
        /// The journal record where they begin.
        first: u64,
    },
    /// A tool call, as its last update left it.
    Tool(Box<ReplayedTool>),
}

/// A tool call that was told again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedTool {
    /// The call.
    pub call: UncertainTool,
    /// How far it is.
    pub status: Option<String>,
    /// Files that it changes.
    pub files: Vec<String>,
}

impl ReplayedTool {
    /// Tells whether it has ended.
    pub fn is_over(&self) -> bool {
        self.status.as_deref().is_some_and(is_over)
    }
}

impl Replay {
    /// Adds part of a message.
    pub fn push_text(&mut self, voice: Voice, text: String, first: u64) {
        self.pieces.push(Piece::Text { voice, text, first });
    }

    /// Adds a tool call, or what became of one: only what is told is changed.
    pub fn push_tool(&mut self, told: ReplayedTool) {
        let known = self.pieces.iter_mut().rev().find_map(|piece| match piece {
            Piece::Tool(known) if known.call.tool_call_id == told.call.tool_call_id => Some(known),
            _ => None,
        });
        let Some(known) = known else {
            return self.pieces.push(Piece::Tool(Box::new(told)));
        };
        if !told.call.title.is_empty() {
            known.call.title = told.call.title;
        }
        known.call.kind = told.call.kind.or(known.call.kind.take());
        known.call.input = told.call.input.or(known.call.input.take());
        known.status = told.status.or(known.status.take());
        known.files.extend(told.files);
    }

    /// Returns the tool calls.
    pub fn tools(&self) -> impl Iterator<Item = &ReplayedTool> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Tool(tool) => Some(&**tool),
            Piece::Text { .. } => None,
        })
    }

    fn count(&self, wanted: Voice) -> u64 {
        let of = |piece: &&Piece| matches!(piece, Piece::Text { voice, .. } if *voice == wanted);
        self.pieces.iter().filter(of).count() as u64
    }
}

/// Folds white space: every stretch of it is one space, and none stands at an end.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
