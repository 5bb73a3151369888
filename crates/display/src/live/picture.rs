//! What records and words mean to someone who watches: pieces to be shown. Pure but for payloads that are kept apart.

use anstyle::Style;
use rekindle_client::payloads::Payloads;
use rekindle_domain::event::{Event, ResumePolicy};
use rekindle_domain::line::Line;
use rekindle_terminal::output::{COURSE, DIM, GOOD, WARN, plural, size};
use rekindle_terminal::sanitise;
use rekindle_wire::event::Delta;
use serde_json::Value;

use super::diff::Styled;
use super::messages::Messages;
use super::piece::{Piece, clean_line, line};
use super::run_lines::run_lines;
use super::tools::Tools;
use crate::record_text::{message_text, payload, plan_gist, successor};

/// How much of a prompt is shown again: what fits on a screen beside what comes of it.
const ECHO_LINES: usize = 20;
const ECHO_CHARS: usize = 2000;

/// Lines that are remembered of those that stand last: more than a tool's line is ever followed by.
const MAX_ABOVE: usize = 200;

/// What was shown so far.
pub struct Picture {
    blobs: Payloads,
    pub(super) messages: Messages,
    tools: Tools,
    planned: bool,
    /// The lines that stand last, as long as nothing else comes.
    above: Vec<Styled>,
    /// Whether the session continues by itself, if that was heard.
    pub(crate) policy: Option<ResumePolicy>,
}

impl Picture {
    /// Begins with nothing shown.
    pub fn new(blobs: Payloads) -> Picture {
        let (messages, tools) = Default::default();
        Picture { blobs, messages, tools, planned: false, above: Vec::new(), policy: None }
    }

    /// Takes a record.
    pub fn record(&mut self, text: &str) -> Vec<Piece> {
        let parsed = Line::parse(text.as_bytes());
        let Ok(record) = parsed else { return vec![line(WARN, "a record cannot be read")] };
        let mut pieces = match record.event() {
            Ok(event) => self.event(&event),
            Err(_) => vec![line(WARN, format!("record {} cannot be read", record.seq))],
        };
        pieces.extend(self.messages.show_waiting());
        self.see(&mut pieces);
        pieces
    }

    /// Sees which lines stand last. A change that a tool's line was followed by is not shown once more by the question whether it may
    /// be made.
    fn see(&mut self, pieces: &mut [Piece]) {
        for piece in pieces {
            match piece {
                Piece::Line(line) => self.above.push(line.clone()),
                Piece::Asked(ask) => ask.leave_out(&self.above),
                Piece::Begun { .. } | Piece::Ended(..) | Piece::Dropped(_) | Piece::AskOver(_) => {}
                _ => self.above.clear(),
            }
        }
        self.above.drain(..self.above.len().saturating_sub(MAX_ABOVE));
    }

    /// Takes words that are in no record yet.
    pub fn words(&mut self, words: Delta) -> Vec<Piece> {
        let mut pieces = self.messages.add_delta(words);
        self.see(&mut pieces);
        pieces
    }

    /// Nothing more was heard for a moment: words that waited for that are shown.
    pub fn rest(&mut self) -> Vec<Piece> {
        let mut pieces = self.messages.show_waiting();
        self.see(&mut pieces);
        pieces
    }

    /// Tells whether words wait for what is heard next.
    pub fn waits(&self) -> bool {
        self.messages.waits()
    }

    /// Words may have been missed: records tell what they were.
    pub fn miss_words(&mut self) {
        self.messages.forget_waiting();
    }

    fn event(&mut self, event: &Event<'_>) -> Vec<Piece> {
        match event {
            Event::SessionCreated(created) => {
                self.policy = Some(created.options.resume);
                Vec::new()
            }
            Event::SessionUpdated(updated) => {
                self.policy = updated.options.as_ref().map(|options| options.resume).or(self.policy);
                Vec::new()
            }
            Event::MessageUser(message) => {
                let queued = if message.queued { "(queued) " } else { "" };
                marked(&message_text(&message.content, &self.blobs), queued)
            }
            Event::MessageAgent(message) => {
                let text = message_text(&message.content, &self.blobs);
                let mut pieces = self.messages.finish(message.message_id.as_str(), &text, Piece::Answer);
                pieces.push(Piece::AnswerEnd);
                if message.partial {
                    pieces.push(line(WARN, "the message is incomplete: the agent died"));
                }
                pieces
            }
            Event::MessageThought(thought) => {
                let text = message_text(&thought.0.content, &self.blobs);
                let mut pieces = self.messages.finish(thought.0.message_id.as_str(), &text, Piece::Thought);
                pieces.push(Piece::ThoughtEnd);
                pieces
            }
            Event::ToolCall(call) => {
                let raw = call.raw.as_ref().map(|raw| payload(raw, &self.blobs));
                let status = call.status.as_deref().unwrap_or("pending");
                self.tools.take(&call.tool_call_id, Some(&call.title), Some(status), raw)
            }
            Event::ToolUpdate(update) => {
                let raw = update.raw.as_ref().map(|raw| payload(raw, &self.blobs));
                self.tools.take(&update.tool_call_id, update.title.as_deref(), update.status.as_deref(), raw)
            }
            Event::PlanUpdated(plan) => self.plan(plan),
            Event::ModeUpdated(mode) => vec![clean_line(DIM, format!("mode: {}", mode.mode_id))],
            Event::AgentNotice(notice) if matches!(notice.what.as_ref(), "notice" | "protocol_error") => {
                vec![clean_line(DIM, notice.text.as_deref().unwrap_or(&notice.what))]
            }
            // What agents say that take commands; what ended one is told by the run's end, and in words.
            Event::AgentNotice(notice)
                if matches!(notice.what.as_ref(), "event" | "late_event" | "log" | "artifact") =>
            {
                let text = notice.text.as_deref().unwrap_or_default();
                vec![clean_line(DIM, format!("{}: {text}", notice.what.replace('_', " ")))]
            }
            Event::SessionRestored(restored) => {
                let (style, text) = restored_text(&restored.verdict);
                vec![clean_line(style, text)]
            }
            Event::LogRepaired(repaired) => {
                vec![clean_line(WARN, format!("the log was repaired after a crash: {}", repaired.what))]
            }
            Event::SnapshotFailed(failed) => {
                vec![clean_line(WARN, format!("a snapshot could not be written: {}", failed.error))]
            }
            Event::SessionClosed(closed) => {
                vec![clean_line(DIM, format!("the session was closed{}", successor(closed.replaced_by)))]
            }
            event => {
                let pieces = run_lines(event, &self.blobs);
                if pieces.iter().any(|piece| matches!(piece, Piece::Ended(..))) {
                    self.messages.over();
                }
                pieces
            }
        }
    }

    /// Shows a plan whole once, then how far it is.
    fn plan(&mut self, plan: &rekindle_domain::event::PlanUpdated<'_>) -> Vec<Piece> {
        let mut pieces = vec![clean_line(DIM, format!("plan: {}", plan_gist(&plan.entries)))];
        if !std::mem::replace(&mut self.planned, true) {
            let entries: Vec<Value> = serde_json::from_str(plan.entries.as_json()).unwrap_or_default();
            for entry in &entries {
                let mark = match entry["status"].as_str() {
                    Some("completed") => '✓',
                    Some("in_progress") => '▸',
                    _ => '·',
                };
                let text = sanitise::line(entry["content"].as_str().unwrap_or_default());
                pieces.push(line(DIM, format!("  {mark} {text}")));
            }
        }
        pieces
    }
}

/// Says how much of the conversation an agent has that came back.
fn restored_text(verdict: &str) -> (Style, &'static str) {
    match verdict {
        "continued" => (COURSE, "conversation restored"),
        "reprimed" => (COURSE, "the agent was told what had happened so far"),
        "shorter" => (WARN, "the agent does not remember all of the conversation"),
        "fresh" => (WARN, "the agent remembers nothing of the conversation"),
        _ => (WARN, "it is not known how much of the conversation the agent remembers"),
    }
}

/// Shows again what a person has said.
pub fn echo(text: &str) -> Vec<Piece> {
    marked(text, "")
}

fn marked(text: &str, mark: &str) -> Vec<Piece> {
    let text = sanitise::block(text);
    let (shown, more) = beginning(&text);
    let shown = shown.lines().map(|text| line(GOOD, format!("> {mark}{text}")));
    shown.chain(more.map(|more| line(DIM, format!("> {more}")))).collect()
}

/// Returns as much of a message as a person wants to see again who has just written it, and how long it is if that is not
/// all.
fn beginning(text: &str) -> (&str, Option<String>) {
    let lines = text.match_indices('\n').nth(ECHO_LINES - 1).map_or(text.len(), |(at, _)| at);
    let chars = text.char_indices().nth(ECHO_CHARS).map_or(text.len(), |(at, _)| at);
    let shown = &text[..lines.min(chars)];
    if shown.trim_end().len() == text.trim_end().len() {
        return (shown, None);
    }
    let (lines, bytes) = (text.lines().count() as u64, text.len() as u64);
    (shown, Some(format!("… ({}, {}; rekindle log shows all of it)", plural(lines, "line"), size(bytes))))
}

#[cfg(test)]
mod tests;
