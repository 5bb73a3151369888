//! The resume context of a session: its turns in brief, folded from the log, for an agent that was not there or was cut in
//! the middle of one. Bounded, however long the log is. What is told of it, and to whom, is in `resume_context/prompt.rs`.

mod drift_text;
mod memory;
mod prompt;
mod restored_files;

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::event::{
    CancelReason, CheckpointAt, CheckpointHow, Event, InputKind, InterruptReason, Raw, UncertainTool,
    tool_label,
};
use crate::id::{MessageId, RunId, WaitId};

pub use memory::Memory;
pub use prompt::Continuation;
pub use restored_files::restored_files_text;

/// Turns that are kept: an agent that has to be told more is better told to look at the files.
const TURNS: usize = 12;
/// Tool calls of a turn that are kept.
const TOOLS: usize = 48;
/// Files of a turn that are kept.
const FILES: usize = 64;
/// Characters of an earlier request, of an answer and of a step that are told.
const REQUEST: usize = 1000;
const ANSWER: usize = 1500;
const STEP: usize = 300;

/// One turn, in brief.
#[derive(Debug, Default, Clone)]
struct Turn {
    run: Option<RunId>,
    /// The turn that it goes on with.
    continues: Option<RunId>,
    request: String,
    answer: String,
    tools: VecDeque<Tool>,
    /// Tool calls that were kept no longer.
    more_tools: usize,
    files: Vec<String>,
    /// Files that differ from what they were at its start, found when others may have changed them too.
    late_files: Vec<String>,
    /// Some agent was given its prompt.
    sent: bool,
    cut: bool,
    cancelled: bool,
}

/// One tool call, in brief.
#[derive(Debug, Default, Clone)]
struct Tool {
    id: String,
    title: String,
    input: Option<String>,
    ended: bool,
}

impl Tool {
    fn label(&self) -> String {
        truncate_end(&tool_label(&self.title, self.input.as_deref()), STEP)
    }
}

/// The history of a conversation, in brief.
#[derive(Debug, Default, Clone)]
pub struct ConversationHistory {
    turns: VecDeque<Turn>,
    /// Turns that were kept no longer.
    more_turns: usize,
    /// Messages that have no turn yet.
    messages: VecDeque<(MessageId, String)>,
    /// The first run of the chain of attempts.
    origin: Option<RunId>,
    /// What the agent has asked and nobody has answered: the wait, and the tool call that it is about.
    asked: Vec<(WaitId, Option<String>)>,
    /// How the last cut came about, and what it left uncertain.
    cut: Option<(InterruptReason, Vec<UncertainTool>)>,
    /// What the latest agent knows of it.
    memory: Memory,
    /// An agent was launched before.
    launched: bool,
}

impl ConversationHistory {
    /// Tells whether a run's beginning was taken in.
    pub fn knows(&self, run: RunId) -> bool {
        self.turns.iter().any(|turn| turn.run == Some(run))
    }

    /// Returns what the latest agent knows.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Takes in a record.
    pub fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentLaunching(_) => {
                self.memory = if self.launched { Memory::NOTHING } else { Memory::WHOLE };
                self.launched = true;
            }
            Event::SessionRestored(restored) => self.memory = Memory::after(restored),
            Event::MessageUser(message) => {
                self.messages
                    .push_back((message.message_id, truncate_end(&message_text(&message.content), REQUEST)));
                if self.messages.len() > crate::session::MAX_QUEUED + 1 {
                    self.messages.pop_front();
                }
            }
            Event::RunStarted(run) => {
                let at = self.messages.iter().position(|(id, _)| Some(*id) == run.message_id);
                let request = at.and_then(|at| self.messages.remove(at)).map(|(_, text)| text);
                if run.continues.is_none() {
                    (self.origin, self.cut) = (Some(run.run_id), None);
                    self.asked.clear();
                }
                let request = request.unwrap_or_default();
                let (run, continues) = (Some(run.run_id), run.continues);
                self.turns.push_back(Turn { run, continues, request, ..Turn::default() });
                if self.turns.len() > TURNS {
                    self.turns.pop_front();
                    self.more_turns += 1;
                }
            }
            Event::InputQueued(input) if input.what == InputKind::Prompt => {
                self.change(input.run_id, |turn| turn.sent = true);
                // Whatever it did not know it is told with its prompt.
                self.memory = Memory::WHOLE;
                self.asked.clear();
            }
            Event::RunInterrupted(cut) => {
                // What an earlier attempt left uncertain still is.
                let (reason, mut uncertain) =
                    (cut.reason, self.cut.take().map(|(_, tools)| tools).unwrap_or_default());
                uncertain
                    .retain(|known| cut.uncertain.iter().all(|new| new.tool_call_id != known.tool_call_id));
                uncertain.extend(cut.uncertain.iter().cloned());
                self.cut = Some((reason, uncertain));
                self.change(Some(cut.run_id), |turn| turn.cut = true);
            }
            Event::RunCheckpoint(checkpoint) if checkpoint.at == CheckpointAt::End => {
                let files = checkpoint.files_touched.iter().flat_map(|touched| &touched.first);
                let paths: Vec<Cow<'_, str>> = files
                    .filter_map(|file| {
                        Some(format!("{}/{}", checkpoint.root, file.path.path.as_ref()?).into())
                    })
                    .collect();
                // What was captured late may be somebody else's work.
                let live = checkpoint.how == CheckpointHow::Live;
                self.change(Some(checkpoint.run_id), |turn| {
                    add_files(if live { &mut turn.files } else { &mut turn.late_files }, &paths);
                });
            }
            Event::RunWaiting(waiting) if !waiting.wait_kind.is_outside() => {
                let tool = waiting.tool_call_id.as_ref().map(ToString::to_string);
                self.asked.push((waiting.wait_id, tool));
            }
            Event::RunResumed(resumed) => self.asked.retain(|(wait, _)| *wait != resumed.wait_id),
            Event::RunCancelRequested(asked) if asked.why != CancelReason::WaitTimeout => {
                // One that goes on may still end otherwise; one that was cut has nothing else to come.
                self.change(asked.run_id, |turn| turn.cancelled = turn.cut);
            }
            Event::RunCancelled(cancelled) => self.cancel(cancelled.run_id),
            Event::MessageAgent(said) => {
                if let Some(turn) = self.turns.back_mut() {
                    turn.answer = truncate_start(&message_text(&said.content), ANSWER);
                }
            }
            Event::ToolCall(call) => {
                let tool = Tool {
                    id: call.tool_call_id.to_string(),
                    title: call.title.to_string(),
                    input: call.input.as_ref().map(ToString::to_string),
                    ended: call.status.as_deref().is_some_and(is_end),
                };
                if let Some(turn) = self.turns.back_mut() {
                    turn.begin_tool(tool);
                    add_files(&mut turn.files, &call.files);
                }
            }
            Event::ToolUpdate(update) => {
                let ended = update.status.as_deref().is_some_and(is_end);
                for turn in &mut self.turns {
                    let known = turn.tools.iter_mut().find(|tool| tool.id == update.tool_call_id);
                    let Some(tool) = known else { continue };
                    tool.ended |= ended;
                    if let Some(title) = &update.title {
                        tool.title = title.to_string();
                    }
                    if let Some(input) = &update.input {
                        tool.input = Some(input.to_string());
                    }
                    add_files(&mut turn.files, &update.files);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, run: Option<RunId>, change: impl FnOnce(&mut Turn)) {
        let turn = self.turns.iter_mut().rev().find(|turn| run.is_some() && turn.run == run);
        turn.map(change);
    }

    /// Nobody wants a turn any more. One that no agent was told of is not part of the story: whoever reads of it would
    /// take it for a wish.
    fn cancel(&mut self, run: RunId) {
        let at = self.turns.iter().position(|turn| turn.run == Some(run));
        let Some(at) = at else { return };
        if self.turns[at].sent {
            self.turns[at].cancelled = true;
        } else if let Some(turn) = self.turns.remove(at) {
            self.change(turn.continues, |before| before.cancelled = true);
        }
    }
}

impl Turn {
    fn begin_tool(&mut self, tool: Tool) {
        // Some agents announce a call twice: when they ask for permission, and when it begins.
        if let Some(known) = self.tools.iter_mut().find(|known| known.id == tool.id) {
            known.ended |= tool.ended;
            known.input = tool.input.or(known.input.take());
            if !tool.title.is_empty() {
                known.title = tool.title;
            }
            return;
        }
        self.tools.push_back(tool);
        if self.tools.len() > TOOLS {
            self.tools.pop_front();
            self.more_tools += 1;
        }
    }
}

fn add_files(known: &mut Vec<String>, files: &[Cow<'_, str>]) {
    for file in files {
        if known.len() < FILES && !known.iter().any(|known| known == file) {
            known.push(file.to_string());
        }
    }
}

fn is_end(status: &str) -> bool {
    matches!(status, "completed" | "failed")
}

/// Returns the text of a message: a string, or the texts of its blocks.
fn message_text(content: &Raw<'_>) -> String {
    match serde_json::from_str::<serde_json::Value>(content.as_json()) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(|text| text.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn truncate_end(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn truncate_start(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    format!("…{}", text.chars().skip(count - most).collect::<String>())
}

#[cfg(test)]
mod tests;
