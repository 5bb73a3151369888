//! What records and words mean to someone who watches: pieces to be shown. Pure but for payloads that are kept apart.

use std::collections::HashMap;

use clap::builder::styling::Style;
use rekindle_domain::event::{Event, ResumePolicy};
use rekindle_domain::line::Line;
use rekindle_store::blobs::Blobs;
use serde_json::Value;

use super::ask::Ask;
use super::diff::{Styled, diffs};
use super::end::End;
use crate::client::wire::Words;
use crate::output::{BAD, COURSE, DIM, GOOD, PLAIN, WARN, plural};
use crate::record_text::{message_text, payload, plan_gist, word};
use crate::sanitise::{self, Filter};

/// Lines of a difference that are shown while the agent works; a permission shows them all.
const MAX_DIFF: usize = 40;

/// Something to be shown or known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Words of the answer, clean.
    Answer(String),
    /// A message of the answer is whole.
    AnswerEnd,
    /// Words of a thought, clean.
    Thought(String),
    /// A thought is whole.
    ThoughtEnd,
    /// A line about what happens.
    Line(Styled),
    /// The line of a tool call, which replaces an earlier one of the same call.
    Tool(String, Styled),
    /// The agent asks.
    Asked(Ask),
    /// A wait is over: which, and how.
    AskOver(String, String),
    /// A run began: itself, its message, and the run it continues.
    Begun { run: String, message: Option<String>, continues: Option<String> },
    /// A run ended.
    Ended(String, End),
    /// A queued message will not be sent.
    Dropped(String),
}

/// A message of which some words were shown.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    filter: Filter,
    /// Words were missed: the rest is shown when the message is whole.
    held: bool,
}

#[derive(Debug, Default)]
struct Tool {
    title: String,
    diff: Vec<Styled>,
}

/// What was shown so far.
pub(crate) struct Picture {
    blobs: Blobs,
    messages: HashMap<String, Shown>,
    tools: HashMap<String, Tool>,
    planned: bool,
    /// Whether the session continues by itself, if that was heard.
    pub(crate) policy: Option<ResumePolicy>,
}

fn line(style: Style, text: impl Into<String>) -> Piece {
    Piece::Line((style, text.into()))
}

impl Picture {
    /// Begins with nothing shown.
    pub(crate) fn new(blobs: Blobs) -> Picture {
        let (messages, tools) = Default::default();
        Picture { blobs, messages, tools, planned: false, policy: None }
    }

    /// Words may have been missed: messages that were begun go on when they are whole.
    pub(crate) fn missed(&mut self) {
        for shown in self.messages.values_mut() {
            shown.held = true;
        }
    }

    /// Takes words that are in no record yet.
    pub(crate) fn words(&mut self, words: &Words) -> Option<Piece> {
        let shown = self.messages.entry(words.message_id.clone()).or_default();
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

    /// Takes a record.
    pub(crate) fn record(&mut self, text: &str) -> Vec<Piece> {
        let parsed = Line::parse(text.as_bytes());
        let Ok(record) = parsed else { return vec![line(WARN, "a record cannot be read")] };
        match record.event() {
            Ok(event) => self.event(&event),
            Err(_) => vec![line(WARN, format!("record {} cannot be read", record.seq))],
        }
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
                let text = sanitise::block(&message_text(&message.content, &self.blobs));
                let queued = if message.queued { "(queued) " } else { "" };
                text.lines().map(|text| line(GOOD, format!("> {queued}{text}"))).collect()
            }
            Event::MessageAgent(message) => {
                let text = message_text(&message.content, &self.blobs);
                let mut pieces = self.whole(message.message_id.as_str(), &text, Piece::Answer);
                pieces.push(Piece::AnswerEnd);
                if message.partial {
                    pieces.push(line(WARN, "the message is cut short: the agent died"));
                }
                pieces
            }
            Event::MessageThought(thought) => {
                let text = message_text(&thought.0.content, &self.blobs);
                let mut pieces = self.whole(thought.0.message_id.as_str(), &text, Piece::Thought);
                pieces.push(Piece::ThoughtEnd);
                pieces
            }
            Event::ToolCall(call) => {
                let raw = call.raw.as_ref().map(|raw| payload(raw, &self.blobs));
                self.tool(
                    &call.tool_call_id,
                    Some(&call.title),
                    call.status.as_deref().or(Some("pending")),
                    raw,
                )
            }
            Event::ToolUpdate(update) => {
                let raw = update.raw.as_ref().map(|raw| payload(raw, &self.blobs));
                self.tool(&update.tool_call_id, update.title.as_deref(), update.status.as_deref(), raw)
            }
            Event::PlanUpdated(plan) => self.plan(plan),
            Event::ModeUpdated(mode) => vec![line(DIM, format!("mode: {}", sanitise::line(&mode.mode_id)))],
            Event::AgentNotice(notice) if matches!(notice.what.as_ref(), "notice" | "protocol_error") => {
                let text = notice.text.as_deref().unwrap_or(&notice.what);
                vec![line(DIM, sanitise::line(text))]
            }
            Event::SessionRestored(restored) => {
                let style = if restored.verdict == "continued" { COURSE } else { WARN };
                let text = format!(
                    "the agent's conversation was brought back by {}: {}",
                    restored.method, restored.verdict
                );
                vec![line(style, sanitise::line(&text))]
            }
            Event::LogRepaired(repaired) => {
                vec![line(
                    WARN,
                    format!("the log was put right after a crash: {}", sanitise::line(&repaired.what)),
                )]
            }
            Event::SnapshotFailed(failed) => {
                vec![line(
                    WARN,
                    format!("a snapshot could not be written: {}", sanitise::line(&failed.error)),
                )]
            }
            Event::SessionClosed(_) => vec![line(DIM, "the session was closed")],
            event => run(event, &self.blobs),
        }
    }

    /// Shows of a whole message what was not shown yet.
    fn whole(&mut self, id: &str, text: &str, piece: fn(String) -> Piece) -> Vec<Piece> {
        let mut shown = self.messages.remove(id).unwrap_or_default();
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

    fn tool(
        &mut self,
        id: &str,
        title: Option<&str>,
        status: Option<&str>,
        raw: Option<Value>,
    ) -> Vec<Piece> {
        let tool = self.tools.entry(id.to_owned()).or_default();
        let title = title.map(sanitise::line).filter(|title| !title.is_empty());
        let renamed = title.as_ref().is_some_and(|title| *title != tool.title);
        tool.title = title.unwrap_or_else(|| std::mem::take(&mut tool.title));
        let name = if tool.title.is_empty() { "a tool" } else { &tool.title };
        let shown = match status {
            Some("completed") => Some((GOOD, format!("✓ {name}"))),
            Some("failed") => Some((BAD, format!("✗ {name}"))),
            Some("pending" | "in_progress") if renamed => Some((PLAIN, format!("▸ {name}"))),
            None if renamed => Some((PLAIN, format!("▸ {name}"))),
            _ => None,
        };
        let mut pieces: Vec<Piece> =
            shown.map(|shown| Piece::Tool(id.to_owned(), shown)).into_iter().collect();
        let diff = raw.map(|raw| diffs(&raw["content"])).unwrap_or_default();
        if !diff.is_empty() && diff != tool.diff {
            let more = diff.len().saturating_sub(MAX_DIFF);
            pieces.extend(diff.iter().take(MAX_DIFF).map(|(style, text)| line(*style, format!("  {text}"))));
            if more > 0 {
                pieces.push(line(DIM, format!("  … {} more", plural(more as u64, "line"))));
            }
            tool.diff = diff;
        }
        pieces
    }

    /// Shows a plan whole once, then how far it is.
    fn plan(&mut self, plan: &rekindle_domain::event::PlanUpdated<'_>) -> Vec<Piece> {
        let mut pieces = vec![line(DIM, format!("plan: {}", sanitise::line(&plan_gist(&plan.entries))))];
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

/// Shows what happens to a run.
fn run(event: &Event<'_>, blobs: &Blobs) -> Vec<Piece> {
    let by = |who: Option<&str>| who.map(|who| format!(" by {}", sanitise::line(who))).unwrap_or_default();
    let ended = |run: &rekindle_domain::id::RunId, end| Piece::Ended(run.to_string(), end);
    match event {
        Event::RunStarted(started) => {
            let begun = Piece::Begun {
                run: started.run_id.to_string(),
                message: started.message_id.map(|id| id.to_string()),
                continues: started.continues.map(|run| run.to_string()),
            };
            let again = started.continues.map(|_| {
                line(COURSE, format!("goes on after the interruption, attempt {}", started.attempt))
            });
            again.into_iter().chain([begun]).collect()
        }
        Event::RunWaiting(waiting) => {
            let request = waiting.request.as_ref().map(|raw| payload(raw, blobs)).unwrap_or_default();
            vec![Piece::Asked(Ask::read(waiting.wait_id.as_str(), &word(&waiting.wait_kind), &request))]
        }
        Event::RunResumed(resumed) => {
            let how = format!("{}{}", word(&resumed.how), by(resumed.by.as_deref()));
            vec![Piece::AskOver(resumed.wait_id.to_string(), how)]
        }
        Event::RunAdopted(adopted) => {
            let gap = plural(adopted.gap, "line");
            vec![line(
                COURSE,
                format!("a new daemon took the run over; nothing is lost ({gap} while there was none)"),
            )]
        }
        Event::RunCancelRequested(request) => {
            let dropped = request.dropped.iter().map(|message| Piece::Dropped(message.to_string()));
            let said = line(WARN, format!("cancel asked for{}", by(request.by.as_deref())));
            std::iter::once(said).chain(dropped).collect()
        }
        Event::RunCompleted(completed) => {
            let reason = completed.stop_reason.as_deref().filter(|reason| *reason != "end_turn");
            let said =
                reason.map(|reason| line(WARN, format!("the agent stopped: {}", sanitise::line(reason))));
            let stop_reason = completed.stop_reason.as_deref().map(Into::into);
            said.into_iter().chain([ended(&completed.run_id, End::Completed { stop_reason })]).collect()
        }
        Event::RunFailed(failed) => {
            let said = line(BAD, format!("failed: {}", sanitise::line(&failed.error)));
            vec![said, ended(&failed.run_id, End::Failed)]
        }
        Event::RunCancelled(cancelled) => {
            let said = line(WARN, format!("cancelled{}", by(cancelled.by.as_deref())));
            vec![said, ended(&cancelled.run_id, End::Cancelled)]
        }
        Event::RunInterrupted(cut) => {
            let detail = cut.detail.as_deref().map(|detail| format!(" ({})", sanitise::line(detail)));
            let reason = word(&cut.reason);
            let mut pieces = vec![line(BAD, format!("interrupted: {reason}{}", detail.unwrap_or_default()))];
            if cut.uncertain_turn {
                pieces.push(line(WARN, "  what the agent did last may or may not have happened"));
            }
            for tool in &cut.uncertain {
                let title = sanitise::line(&tool.title);
                pieces.push(line(WARN, format!("  may or may not have happened: {title}")));
            }
            pieces.push(ended(&cut.run_id, End::Interrupted));
            pieces
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
