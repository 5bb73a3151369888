//! What an agent should remember of its session, gathered from the log.

use std::collections::{HashSet, VecDeque};

use rekindle_domain::event::{Event, InputKind, Raw};
use rekindle_domain::id::MessageId;

use super::fold;
use crate::json::Object;

/// Messages that wait for their turn: as many as a queue can hold, and one.
const WAITING: usize = rekindle_domain::session::MAX_QUEUED + 1;

/// What a finished turn should have left in the agent's memory; what is not known is not expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedTurn {
    /// What was asked.
    pub prompt: Option<String>,
    /// What was answered last.
    pub answer: Option<String>,
}

/// A turn that was cut, over all its attempts, as far as it was said in the agent's latest session.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    /// The request, as its message has it; none if it is not known here.
    request: Option<String>,
    /// The prompts that were sent for it, and whether each of them has the whole request in it.
    sent: Vec<(String, bool)>,
    /// What the agent said, and the tool calls that it began, as far as they are in the log.
    pub(super) said: Vec<String>,
    pub(super) tools: HashSet<String>,
}

impl Cut {
    /// Returns the prompts that say the whole request.
    pub fn prompts(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().filter(|(_, whole)| *whole).map(|(text, _)| text.as_str())
    }

    /// Returns all prompts that were sent.
    pub(super) fn sent(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().map(|(text, _)| text.as_str())
    }
}

/// Gathers from a log what an agent should remember.
#[derive(Debug, Clone, Default)]
pub struct Spoken {
    turns: Vec<ExpectedTurn>,
    open: ExpectedTurn,
    /// The turn that is going on or was cut, and whether it was.
    chain: Cut,
    is_cut: bool,
    /// The run that is open continues the turn that was cut.
    continues: bool,
    /// Messages that no run has begun with yet, and the one that the open run began with.
    waiting: VecDeque<(MessageId, String)>,
    request: Option<String>,
    cursor: Option<String>,
}

impl Spoken {
    /// Takes in a record; they must come in the log's order, from the session's beginning.
    pub fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::MessageUser(message) => {
                if let Some(text) = content_text(&message.content) {
                    self.waiting.push_back((message.message_id, text));
                }
                if self.waiting.len() > WAITING {
                    self.waiting.pop_front();
                }
            }
            Event::RunStarted(started) => {
                self.open = ExpectedTurn::default();
                self.continues = started.continues.is_some();
                if !self.continues {
                    let at = self.waiting.iter().position(|(id, _)| Some(*id) == started.message_id);
                    self.request = at.and_then(|at| self.waiting.remove(at)).map(|(_, text)| text);
                }
            }
            Event::InputQueued(input) if input.what == InputKind::Prompt => {
                // What was sent counts, not what a person wrote: a continuation says other words.
                self.open.prompt = sent_text(&input.line);
                if !self.continues {
                    self.chain = Cut { request: self.request.take(), ..Cut::default() };
                    self.is_cut = false;
                }
                if let Some(text) = &self.open.prompt {
                    let request = self.chain.request.as_deref().map(fold).filter(|text| !text.is_empty());
                    let whole = match request {
                        Some(request) => fold(text).contains(&request),
                        None => !self.continues,
                    };
                    self.chain.sent.push((text.clone(), whole));
                }
            }
            Event::MessageAgent(message) => {
                let text = content_text(&message.content);
                self.chain.said.extend(text.clone());
                if !message.partial {
                    self.open.answer = text;
                }
            }
            Event::ToolCall(call) => {
                self.chain.tools.insert(call.tool_call_id.to_string());
            }
            Event::RunCompleted(completed) => {
                let turn = std::mem::take(&mut self.open);
                // A refused prompt is taken out of the agent's conversation by the protocol's own rule.
                if completed.stop_reason.as_deref() != Some("refusal") {
                    self.turns.push(turn);
                }
                self.end_chain();
            }
            // A turn that was cancelled or failed may have left anything or nothing.
            Event::RunFailed(_) | Event::RunCancelled(_) => {
                self.open = ExpectedTurn::default();
                self.end_chain();
            }
            Event::RunInterrupted(_) => {
                self.open = ExpectedTurn::default();
                self.is_cut = true;
            }
            Event::AgentReady(ready) => {
                let cursor = ready.cursor.as_ref().map(|cursor| cursor.as_ref().to_owned());
                // Another session of the agent's knows nothing of what was said in the last one.
                if cursor != self.cursor {
                    self.turns.clear();
                    self.chain = Cut { request: self.chain.request.take(), ..Cut::default() };
                    self.cursor = cursor;
                }
            }
            _ => {}
        }
    }

    fn end_chain(&mut self) {
        (self.chain, self.is_cut) = (Cut::default(), false);
    }

    /// Takes in that the agent's session was made from another one: it should contain what that one does.
    pub fn inherit(&mut self, origin: Spoken) {
        self.turns.splice(0..0, origin.turns);
    }

    /// Returns the finished turns that the agent's latest session should contain.
    pub fn turns(&self) -> &[ExpectedTurn] {
        &self.turns
    }

    /// Returns the turn that was cut and that nothing has followed yet.
    pub fn cut(&self) -> Option<&Cut> {
        Some(&self.chain).filter(|_| self.is_cut)
    }
}

/// Returns the text of a prompt that was sent, if its line stands in the log.
fn sent_text(line: &Raw<'_>) -> Option<String> {
    let line: String = serde_json::from_str(line.as_json()).ok()?;
    let object = Object::parse(&line)?;
    let prompt = object.object("params").raw("prompt")?;
    content_text(&serde_json::from_str(prompt.get()).ok()?)
}

/// Returns the text of a message; of one that is kept as a blob there is none here.
fn content_text(content: &Raw<'_>) -> Option<String> {
    let json = content.as_json();
    (!json.starts_with('{')).then(|| content.plain_text())
}
