//! What an agent tells while it brings a session back and what our log does not have: work that it did inside the load, or
//! after the process died that spoke to us. It belongs to the turn that was cut, behind its last prompt.

use rekindle_domain::event::{Event, MessageAgent, Raw, ToolCall, UncertainTool};
use rekindle_domain::id::{HolderId, RunId};

use super::compare::{ReplayPosition, find};
use super::expected::Cut;
use super::{Piece, Replay, ReplayedTool, fold};
use crate::message_id::message_id;
use crate::said::Voice;

/// Something that only the replay tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrecorded {
    /// The agent said this.
    Said {
        /// The words.
        text: String,
        /// The journal record where they begin.
        first: u64,
    },
    /// The agent used a tool.
    Tool(ReplayedTool),
}

impl Unrecorded {
    /// Returns the record of it, as part of a run.
    pub fn event(self, run_id: RunId, holder: HolderId) -> Event<'static> {
        let run_id = Some(run_id);
        match self {
            Unrecorded::Said { text, first } => {
                let (message_id, content) = (message_id(holder, first), Raw::text(&text));
                MessageAgent { run_id, message_id, content, partial: false }.into()
            }
            Unrecorded::Tool(ReplayedTool { call, status, files }) => ToolCall {
                run_id,
                tool_call_id: call.tool_call_id.into(),
                title: call.title.into(),
                tool_kind: call.kind.map(Into::into),
                status: status.map(Into::into),
                input: call.input.map(Into::into),
                files: files.into_iter().map(Into::into).collect(),
                raw: None,
            }
            .into(),
        }
    }

    /// Returns the tool call, if it is one that has not ended.
    pub fn unfinished(&self) -> Option<&UncertainTool> {
        match self {
            Unrecorded::Tool(tool) if !tool.is_over() => Some(&tool.call),
            Unrecorded::Tool(_) | Unrecorded::Said { .. } => None,
        }
    }
}

/// Returns what a replay tells of a turn that was cut beyond what the log has of it.
///
/// Only behind a prompt of that turn: what stands before it may be history that the agent words in another way.
pub fn beyond(replay: &Replay, cut: &Cut) -> Vec<Unrecorded> {
    let Some(from) = last_prompt(replay, cut) else { return Vec::new() };
    let said = Said::of(cut);
    let mut found = Vec::new();
    let mut message: Option<(String, u64)> = None;
    let end_message = |message: &mut Option<(String, u64)>, found: &mut Vec<Unrecorded>| {
        if let Some((text, first)) = message.take().filter(|(text, _)| !said.has(text)) {
            found.push(Unrecorded::Said { text, first });
        }
    };
    for piece in replay.pieces.iter().skip(from.piece) {
        match piece {
            Piece::Text { voice: Voice::Agent, text, first } => {
                message.get_or_insert_with(|| (String::new(), *first)).0.push_str(text);
            }
            Piece::Text { .. } => end_message(&mut message, &mut found),
            Piece::Tool(tool) => {
                end_message(&mut message, &mut found);
                if !cut.tools.contains(&tool.call.tool_call_id) {
                    found.push(Unrecorded::Tool((**tool).clone()));
                }
            }
        }
    }
    end_message(&mut message, &mut found);
    found
}

/// Returns the place behind the last prompt of the turn that the replay shows.
fn last_prompt(replay: &Replay, cut: &Cut) -> Option<ReplayPosition> {
    let prompts: Vec<String> = cut.sent().map(fold).filter(|prompt| !prompt.is_empty()).collect();
    let (mut from, mut last) = (ReplayPosition::default(), None);
    while let Some(end) = prompts.iter().filter_map(|prompt| find(replay, from, Voice::User, prompt)).min() {
        (from, last) = (end, Some(end));
    }
    last
}

/// What the log has of what was said.
struct Said {
    each: Vec<String>,
    all: String,
}

impl Said {
    fn of(cut: &Cut) -> Said {
        let each: Vec<String> =
            cut.said.iter().map(|text| fold(text)).filter(|text| !text.is_empty()).collect();
        Said { all: each.join(" "), each }
    }

    /// Tells whether a text is known: all of it, or its beginning, because the agent was cut while it said it.
    fn has(&self, text: &str) -> bool {
        let text = fold(text);
        text.is_empty()
            || self.all.contains(&text)
            || self.each.iter().any(|said| said.starts_with(&text) || text.starts_with(said.as_str()))
    }
}
