//! Views of waits: what an agent or a program asks, and how that stands.

use rekindle_domain::id::{RunId, SessionId, WaitId};
use rekindle_domain::time::Timestamp;
use rekindle_domain::{event, projector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::string_enum::string_enums;

string_enums! {
    /// What a wait is for.
    pub enum WaitKind {
        /// May the agent do this?
        Permission = "permission",
        /// The agent asks.
        Question = "question",
        /// A tool outside has the answer.
        ToolResult = "tool_result",
        /// Anything else outside.
        External = "external",
    }

    /// How a wait stands.
    pub enum WaitState {
        /// It can be answered as it was asked.
        Open = "open",
        /// Whoever asked is gone: the answer to an agent's question becomes a message.
        Void = "void",
        /// It is over; lists do not have it.
        Ended = "ended",
    }
}

impl From<event::WaitKind> for WaitKind {
    fn from(kind: event::WaitKind) -> WaitKind {
        match kind {
            event::WaitKind::Permission => WaitKind::Permission,
            event::WaitKind::Question => WaitKind::Question,
            event::WaitKind::ToolResult => WaitKind::ToolResult,
            event::WaitKind::External | event::WaitKind::Unknown => WaitKind::External,
        }
    }
}

impl From<projector::WaitState> for WaitState {
    fn from(state: projector::WaitState) -> WaitState {
        match state {
            projector::WaitState::Open => WaitState::Open,
            projector::WaitState::Void => WaitState::Void,
        }
    }
}

/// A wait.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub struct WaitView {
    /// The wait.
    pub wait_id: WaitId,
    /// Its session.
    pub session_id: SessionId,
    /// Its run.
    pub run_id: RunId,
    /// What for.
    pub kind: WaitKind,
    /// `open`; `void` if its agent is gone: an answer then becomes a message; `ended`, which lists do not have.
    pub state: WaitState,
    /// What was asked, whole.
    pub request: Option<Box<RawValue>>,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub deadline_at: Option<Timestamp>,
    /// How it ended, if it has: `answered`, `withdrawn`, `cancelled` or `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// The answer, if there was one: of a wait that a program opened, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<RawValue>>,
}

impl WaitView {
    /// Returns what was asked, to be looked into; null if that is not known.
    pub fn asked(&self) -> serde_json::Value {
        let request = self.request.as_deref().map(|request| serde_json::from_str(request.get()));
        request.and_then(Result::ok).unwrap_or_default()
    }
}

/// A page of waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WaitList {
    /// The waits; the one that waits longest comes first.
    pub waits: Vec<WaitView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_no_daemon_says_is_in_no_schema() {
        let schema = schemars::schema_for!(WaitState).to_value();
        let words: Vec<&str> = schema["oneOf"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(|one| one["const"].as_str())
            .collect();
        assert_eq!(words, ["open", "void", "ended"]);
    }
}
