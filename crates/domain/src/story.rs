//! What happened in a session, in few words, for an agent that has to go on without having been there, or that was cut
//! in the middle. Folded from the log; bounded, however long that is.

use std::collections::VecDeque;

use crate::event::{CancelReason, Event, InputKind, InterruptReason, Raw, UncertainTool};
use crate::id::{MessageId, RunId};

/// Turns that are told.
const TURNS: usize = 8;
/// Tool calls of a turn that are told.
const TOOLS: usize = 24;
/// Characters of a request, and of an answer, that are told.
const REQUEST: usize = 4000;
const ANSWER: usize = 1500;

#[derive(Debug, Default, Clone)]
struct Turn {
    run: Option<RunId>,
    /// The turn that it goes on with.
    continues: Option<RunId>,
    request: String,
    answer: String,
    tools: VecDeque<(String, String, bool)>,
    /// Some agent was given its prompt.
    sent: bool,
    cut: bool,
    cancelled: bool,
}

/// The story so far.
#[derive(Debug, Default, Clone)]
pub struct Story {
    turns: VecDeque<Turn>,
    /// Messages that have no turn yet.
    messages: VecDeque<(MessageId, String)>,
    /// What the first run of the chain of attempts was asked.
    origin: Option<(RunId, String)>,
    /// How the last cut came about, and what it left uncertain.
    cut: Option<(InterruptReason, Vec<UncertainTool>)>,
}

impl Story {
    /// Tells whether a run's beginning was taken in.
    pub fn knows(&self, run: RunId) -> bool {
        self.turns.iter().any(|turn| turn.run == Some(run))
    }

    /// Takes in a record.
    pub fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::MessageUser(message) => {
                self.messages.push_back((message.message_id, first(&plain(&message.content), REQUEST)));
                if self.messages.len() > crate::session::MAX_QUEUED + 1 {
                    self.messages.pop_front();
                }
            }
            Event::RunStarted(run) => {
                let at = self.messages.iter().position(|(id, _)| Some(*id) == run.message_id);
                let request = at.and_then(|at| self.messages.remove(at)).map(|(_, text)| text);
                if run.continues.is_none() {
                    self.origin = request.clone().map(|request| (run.run_id, request));
                }
                let request = request.unwrap_or_default();
                let (run, continues) = (Some(run.run_id), run.continues);
                self.turns.push_back(Turn { run, continues, request, ..Turn::default() });
                if self.turns.len() > TURNS {
                    self.turns.pop_front();
                }
            }
            Event::InputQueued(input) if input.what == InputKind::Prompt => {
                self.change(input.run_id, |turn| turn.sent = true);
            }
            Event::RunInterrupted(cut) => {
                self.cut = Some((cut.reason, cut.uncertain.clone()));
                self.change(Some(cut.run_id), |turn| turn.cut = true);
            }
            Event::RunCancelRequested(asked) if asked.why != CancelReason::WaitTimeout => {
                // One that goes on may still end otherwise; one that was cut has nothing else to come.
                self.change(asked.run_id, |turn| turn.cancelled = turn.cut);
            }
            Event::RunCancelled(cancelled) => self.cancel(cancelled.run_id),
            Event::MessageAgent(said) => {
                if let Some(turn) = self.turns.back_mut() {
                    turn.answer = last(&plain(&said.content), ANSWER);
                }
            }
            Event::ToolCall(call) => {
                if let Some(turn) = self.turns.back_mut() {
                    let ended = call.status.as_deref().is_some_and(is_end);
                    turn.tools.push_back((call.tool_call_id.to_string(), first(&call.title, 200), ended));
                    if turn.tools.len() > TOOLS {
                        turn.tools.pop_front();
                    }
                }
            }
            Event::ToolUpdate(update) => {
                let tools = self.turns.iter_mut().flat_map(|turn| &mut turn.tools);
                let ended = update.status.as_deref().is_some_and(is_end);
                for tool in tools.filter(|tool| tool.0 == update.tool_call_id) {
                    tool.2 |= ended;
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

    /// Tells whether anything was said before the newest turn.
    pub fn has_past(&self) -> bool {
        self.turns.len() > 1
    }

    /// Returns what an agent that knows nothing is told before a message.
    pub fn digest(&self) -> String {
        let mut text = String::from(
            "[Resume Context]\nThis conversation began with another agent process that is gone. What it was about:\n",
        );
        let past = self.turns.len().saturating_sub(1);
        for turn in self.turns.iter().take(past) {
            turn.tell(&mut text);
        }
        text.push_str("[End of Resume Context]\n\n");
        text
    }

    /// Returns the prompt that continues a turn that was cut. One who was there remembers the rest.
    pub fn continuation(&self, attempt: u32, remembers: bool) -> String {
        let mut text = String::new();
        let reason = self.cut.as_ref().map_or("it was interrupted", |(reason, _)| words(*reason));
        if remembers {
            text.push_str("[Resume Context]\nYour last turn was interrupted: ");
            text.push_str(reason);
            text.push_str(".\n");
        } else {
            text.push_str(
                "[Resume Context]\nAn agent process worked on the request below and was cut short: ",
            );
            text.push_str(reason);
            text.push_str(&format!(". This is attempt {attempt}.\n"));
            if let Some((_, request)) = &self.origin {
                text.push_str(&format!("\nThe request:\n{request}\n"));
            }
        }
        let chain = self.origin.as_ref().map(|(run, _)| *run);
        let from = self.turns.iter().position(|turn| turn.run == chain).unwrap_or(0);
        let worked: Vec<&Turn> = self.turns.iter().skip(from).collect();
        let done: Vec<&str> = worked
            .iter()
            .flat_map(|turn| &turn.tools)
            .filter(|tool| tool.2)
            .map(|tool| tool.1.as_str())
            .collect();
        if !done.is_empty() {
            text.push_str("\nFinished steps, not to be repeated:\n");
            done.iter().for_each(|title| text.push_str(&format!("- {title}\n")));
        }
        let uncertain = self.cut.as_ref().map(|(_, tools)| tools.as_slice()).unwrap_or_default();
        if !uncertain.is_empty() {
            text.push_str("\nThese steps had begun; whether they had their effect is not known. Look before you repeat them:\n");
            uncertain.iter().for_each(|tool| text.push_str(&format!("- {}\n", first(&tool.title, 200))));
        }
        if let Some(said) = worked.iter().rev().map(|turn| turn.answer.as_str()).find(|said| !said.is_empty())
        {
            text.push_str(&format!("\nThe last words before the cut:\n{said}\n"));
        }
        text.push_str("\nGo on from there and finish the request. Do not repeat what is finished.");
        text
    }
}

impl Turn {
    fn tell(&self, text: &mut String) {
        if !self.request.is_empty() {
            text.push_str(&format!("\nUser: {}\n", self.request));
        }
        if self.cancelled {
            text.push_str("(cancelled by the user)\n");
        }
        for (_, title, ended) in &self.tools {
            text.push_str(&format!("- {title}{}\n", if *ended { "" } else { " (not finished)" }));
        }
        if !self.answer.is_empty() {
            text.push_str(&format!("Agent: {}\n", self.answer));
        }
    }
}

fn is_end(status: &str) -> bool {
    matches!(status, "completed" | "failed")
}

fn words(reason: InterruptReason) -> &'static str {
    match reason {
        InterruptReason::MachineRestart => "the machine was started again",
        InterruptReason::AgentExit => "the agent process ended unexpectedly",
        InterruptReason::WaitTimeout => "a question was not answered in time",
        InterruptReason::ProcessRestart | InterruptReason::HolderLost | InterruptReason::NodeLost => {
            "the agent process was lost"
        }
        InterruptReason::Unknown => "it was interrupted",
    }
}

/// Returns the text of a message: a string, or the texts of its blocks.
fn plain(content: &Raw<'_>) -> String {
    match serde_json::from_str::<serde_json::Value>(content.as_json()) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(|text| text.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn last(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    format!("…{}", text.chars().skip(count - most).collect::<String>())
}

#[cfg(test)]
mod tests;
