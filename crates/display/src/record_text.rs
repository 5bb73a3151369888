//! One record as a person reads it: a line with its number, time, kind and gist, and a message below it whole.

use std::io::{self, Write};

use anstyle::Style;
use rekindle_client::content_text::{asked, value_text};
use rekindle_client::failure::Failure;
use rekindle_client::payloads::Payloads;
use rekindle_domain::event::{Event, Raw, UncertainTool};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::blobs::BlobRef;
use rekindle_terminal::output::{
    self, BAD, BOLD, COURSE, DIM, GOOD, PLAIN, WARN, cut, grouped, plural, size, styled,
};
use rekindle_terminal::sanitise;
use serde_json::Value;

use crate::checkpoint_text;
use crate::drift_text;
use crate::pipeline_text;

/// The columns before a gist: number, time and kind.
const KIND_WIDTH: usize = 16;
const INDENT: &str = "       ";

/// Prints records on stdout: as they stand, or as text.
pub struct RecordPrinter {
    out: Box<dyn Write>,
    /// Verbatim: not even through what takes colours out.
    json: bool,
    width: usize,
    /// Long lines of messages are broken between words; elsewhere they stay as they are.
    wraps: bool,
    blobs: Payloads,
    day: String,
}

impl RecordPrinter {
    /// Prints JSON, or text with what is kept apart.
    pub fn new(json: bool, blobs: Payloads) -> RecordPrinter {
        let out: Box<dyn Write> =
            if json { Box::new(output::verbatim()) } else { Box::new(output::stdout()) };
        let (width, wraps) = (output::width(), output::is_terminal());
        RecordPrinter { out, json, width, wraps, blobs, day: String::new() }
    }

    /// Prints a record as a daemon sends it.
    pub fn print(&mut self, record: &str) -> Result<(), Failure> {
        if self.json {
            return Ok(writeln!(self.out, "{record}")?);
        }
        match Line::parse(record.as_bytes()) {
            Ok(line) => self.print_line(&line),
            Err(error) => {
                anstream::eprintln!("note: a record cannot be read: {error}");
                Ok(())
            }
        }
    }

    /// Prints a record.
    pub fn print_line(&mut self, line: &Line<'_>) -> Result<(), Failure> {
        let printed = if self.json { writeln!(self.out, "{}", line.text) } else { self.write_text(line) };
        Ok(printed?)
    }

    /// Hands what was printed on.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Writes one record, and the day before it where that changes.
    fn write_text(&mut self, line: &Line<'_>) -> io::Result<()> {
        let time = line.time().to_string();
        let (day, time) = time.split_once('T').unwrap_or(("", &time));
        if day != self.day {
            writeln!(self.out, "{}", styled(DIM, format_args!("{day} (UTC)")))?;
            self.day = day.to_owned();
        }
        let time = time.get(..8).unwrap_or(time);
        let kind = sanitise::line(line.kind);
        let event = line.event();
        let (gist, message) = match &event {
            Ok(event) => (gist(event), self.message(event)),
            Err(error) => (format!("cannot be read: {error}"), None),
        };
        let head = format!("{:>5}  {time}  ", line.seq);
        let padded = format!("{kind:KIND_WIDTH$}");
        let used = head.len() + output::columns(&padded) + 2;
        let (gist, room) = (sanitise::line(&gist), self.width.saturating_sub(used));
        let (gist, message) = match &event {
            // Told whole: what can be done about it stands at its end.
            Ok(Event::RunFailed(failed)) if output::columns(&gist) > room => {
                (String::new(), Some(failed.error.clone().into_owned()))
            }
            _ => (cut(&gist, room), message),
        };
        let shown = if gist.is_empty() { kind } else { padded };
        let style = style(line.kind);
        let head = styled(DIM, head);
        writeln!(self.out, "{}", format!("{head}{}  {gist}", styled(style, shown)).trim_end())?;
        if let Some(message) = message {
            for line in sanitise::block(&message).lines() {
                let line = self.indented(line);
                writeln!(self.out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }

    /// Returns a line of a message behind its indentation; one that is too long for the terminal is broken.
    fn indented(&self, line: &str) -> String {
        let whole = format!("{INDENT}{line}");
        if !self.wraps || output::columns(&whole) <= self.width {
            return whole;
        }
        let text = line.trim_start();
        let indent = format!("{INDENT}{}", &line[..line.len() - text.len()]);
        output::wrap(text, self.width, &indent, &indent)
    }

    /// Returns what a message says.
    fn message(&self, event: &Event<'_>) -> Option<String> {
        let content = match event {
            Event::MessageUser(message) => &message.content,
            Event::MessageAgent(message) => &message.content,
            Event::MessageThought(message) => &message.0.content,
            _ => return None,
        };
        Some(message_text(content, &self.blobs))
    }
}

/// Returns what a message says, fetched from where large ones are kept.
pub fn message_text(content: &Raw<'_>, blobs: &Payloads) -> String {
    let Ok(reference) = serde_json::from_str::<BlobRef>(content.as_json()) else {
        let value = serde_json::from_str(content.as_json());
        return value.map_or_else(|_| content.as_json().to_owned(), |value| value_text(&value));
    };
    match blobs.get(&reference) {
        Ok(bytes) => match serde_json::from_slice::<Value>(&bytes) {
            Ok(value @ (Value::String(_) | Value::Array(_))) => value_text(&value),
            _ => String::from_utf8_lossy(&bytes).into_owned(),
        },
        Err(error) => format!("[{} kept apart: {error}]", size(reference.size)),
    }
}

/// Returns a payload that may be kept apart.
pub fn payload(raw: &Raw<'_>, blobs: &Payloads) -> Value {
    let fetched = serde_json::from_str::<BlobRef>(raw.as_json()).ok();
    let fetched = fetched.and_then(|reference| blobs.get(&reference).ok());
    match fetched {
        Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
        None => serde_json::from_str(raw.as_json()).unwrap_or_default(),
    }
}

fn style(kind: &str) -> Style {
    match kind {
        "message.user" => GOOD.bold(),
        "message.agent" => BOLD,
        "run.failed" | "run.interrupted" | "snapshot.failed" | "log.repaired" => BAD,
        "run.waiting" | "run.cancel_requested" | "run.cancelled" | "run.drift" | "run.budget" => WARN,
        "run.checkpoint" => DIM,
        _ if kind.starts_with("run.") || kind.starts_with("session.") => COURSE,
        "message.thought" | "tool.call" | "tool.update" => PLAIN,
        other => pipeline_text::style(other).unwrap_or(DIM),
    }
}

/// Says in a few words what a record is about.
fn gist(event: &Event<'_>) -> String {
    match event {
        Event::SessionCreated(created) => {
            let agent = created.provider.agent.as_deref().unwrap_or(&created.provider.profile);
            let forked =
                created.forked_from.as_ref().map(|from| format!(", forked from {}", from.session_id));
            let forked = forked.unwrap_or_default();
            format!("{:?} by {agent} in {}{forked}", created.title, created.working_dir)
        }
        Event::SessionUpdated(updated) if updated.imported.is_some() => {
            let from = updated.imported.as_ref().and_then(|imported| imported.machine.as_deref());
            let from = from.map(|machine| format!(" from {machine}")).unwrap_or_default();
            let place = updated.working_dir.as_ref().map(|place| format!(", works in {place} now"));
            format!("imported{from}{}", place.unwrap_or_default())
        }
        Event::SessionUpdated(updated) => {
            updated.title.as_deref().map_or_else(String::new, |title| format!("{title:?}"))
        }
        Event::SessionFilesRestoring(wanted) => {
            format!("as before {} {}", wanted.run_id, by(wanted.by.as_deref()))
        }
        Event::SessionFilesRestored(restored) => match &restored.error {
            Some(error) => format!("files are left as they are: {error}"),
            None => {
                let left =
                    if restored.left > 0 { format!(", {} left alone", restored.left) } else { String::new() };
                format!("{} changed{left}", plural(restored.changed, "file"))
            }
        },
        Event::SessionWorktreeAdded(added) => {
            let carried = match added.carried {
                0 => String::new(),
                carried => format!(
                    ", with {} that {} not committed",
                    plural(carried, "change"),
                    if carried == 1 { "is" } else { "are" }
                ),
            };
            let copied = match added.copied {
                0 => String::new(),
                copied => format!(", {} copied that git ignores", plural(copied, "file")),
            };
            let setup =
                added.setup.as_ref().map(|setup| format!(", prepared by {}", setup.command.join(" ")));
            let commit = added.commit.get(..12).unwrap_or(&added.commit);
            format!("made at {commit}{carried}{copied}{}", setup.unwrap_or_default())
        }
        Event::SessionWorktreeMerged(merged) => {
            let commit = merged.commit.get(..12).unwrap_or(&merged.commit);
            format!("into {}: {}, at {commit}", merged.into, plural(merged.commits, "commit"))
        }
        Event::SessionWorktreeRemoved(removed) => {
            removed.bundle.as_ref().map(|bundle| format!("saved in {bundle}")).unwrap_or_default()
        }
        Event::SessionClosed(closed) => {
            format!("{}{}", by(closed.by.as_deref()), successor(closed.replaced_by))
        }
        Event::SessionDeleted(deleted) => by(deleted.by.as_deref()),
        Event::MessageUser(message) => {
            let answers = message.wait_id.map(|wait| format!("answers {wait}"));
            answers.unwrap_or_else(|| if message.queued { "queued".into() } else { String::new() })
        }
        Event::MessageAgent(message)
        | Event::MessageThought(rekindle_domain::event::MessageThought(message)) => {
            if message.partial {
                "incomplete: the agent died".into()
            } else {
                String::new()
            }
        }
        Event::ToolCall(call) => tool(call.status.as_deref(), &call.title),
        Event::ToolUpdate(update) => {
            tool(update.status.as_deref(), update.title.as_deref().unwrap_or(&update.tool_call_id))
        }
        Event::PlanUpdated(plan) => plan_gist(&plan.entries),
        Event::UsageUpdated(usage) => {
            let cost = usage.cost.map(|cost| format!(", cost {cost:.4}")).unwrap_or_default();
            let (read, written) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
            format!("{read} tokens read, {written} written{cost}")
        }
        Event::ModeUpdated(mode) => mode.mode_id.as_ref().into(),
        Event::AgentNotice(notice) => notice
            .text
            .as_ref()
            .map_or_else(|| notice.what.as_ref().into(), |text| format!("{}: {text}", notice.what)),
        Event::InputQueued(input) => {
            format!("{} {} to {}", word(&input.what), input.input_seq, input.holder_id)
        }
        Event::AgentLaunching(launching) => launching.argv.join(" "),
        Event::AgentStarted(started) => {
            format!("process {} in holder process {}", started.agent.pid, started.holder.pid)
        }
        Event::AgentReady(ready) => {
            ready.cursor.as_deref().map_or_else(String::new, |cursor| format!("its session {cursor}"))
        }
        Event::AgentExited(exited) => {
            let how = match (exited.code, exited.signal) {
                (_, Some(signal)) => format!("by signal {signal}"),
                (Some(code), None) => format!("with code {code}"),
                (None, None) => "in an unknown way".into(),
            };
            let said = exited.stderr_tail.as_deref().and_then(|tail| tail.trim().lines().last());
            said.map_or(how.clone(), |said| format!("{how}: {said}"))
        }
        Event::RunStarted(started) => match started.continues {
            Some(run) => format!("attempt {}, continues {run}", started.attempt),
            None => started.run_id.to_string(),
        },
        Event::RunCancelRequested(request) => format!("{} {}", word(&request.why), by(request.by.as_deref())),
        Event::RunWaiting(waiting) => {
            let request = waiting.request.as_ref().and_then(|raw| serde_json::from_str(raw.as_json()).ok());
            let asked = asked(&request.unwrap_or_default());
            let until = waiting.deadline_at.map(|at| format!(" until {at}")).unwrap_or_default();
            let colon = if asked.is_empty() { "" } else { ": " };
            format!("for {}{until}{colon}{asked}", word(&waiting.wait_kind))
        }
        Event::RunResumed(resumed) => format!("{} {}", word(&resumed.how), by(resumed.by.as_deref())),
        Event::RunAdopted(adopted) => {
            format!("after a restart, with {} in between", plural(adopted.gap, "journal record"))
        }
        Event::RunCompleted(completed) => completed.stop_reason.as_deref().unwrap_or_default().into(),
        Event::RunFailed(failed) => failed.error.as_ref().into(),
        Event::RunCancelled(cancelled) => by(cancelled.by.as_deref()),
        Event::RunInterrupted(cut) => {
            let tools: Vec<String> = cut.uncertain.iter().map(UncertainTool::label).collect();
            let uncertain =
                if tools.is_empty() { String::new() } else { format!("; uncertain: {}", tools.join(", ")) };
            format!("{}{uncertain}", cut.why())
        }
        Event::RunCheckpoint(checkpoint) => checkpoint_text::gist(checkpoint),
        Event::RunDrift(found) => drift_text::sentences(&found.drift).join("; "),
        Event::RunBudget(budget) => budget.notice.to_string(),
        Event::TokenMinted(token) => token.resume_token_id.to_string(),
        Event::TokenConsumed(token) => format!("{} {}", token.resume_token_id, by(token.by.as_deref())),
        Event::TokenRevoked(token) => format!("{} {}", token.resume_token_id, token.reason),
        Event::TokenExpired(token) => token.resume_token_id.to_string(),
        Event::SessionRestored(restored) => format!("by {}: {}", restored.method, restored.verdict),
        Event::SnapshotCreated(kept) => {
            let name = kept.snapshot.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
            let why = kept.reason.map(|reason| format!(" ({})", word(&reason))).unwrap_or_default();
            format!("{name}{}{why}", size(kept.size_bytes))
        }
        Event::SnapshotFailed(failed) => failed.error.as_ref().into(),
        Event::SnapshotRestored(restored) => restored.snapshot.as_ref().into(),
        Event::LogRepaired(repaired) => format!(
            "{} at byte {}: {} cut, {} put back",
            repaired.what,
            repaired.offset,
            plural(repaired.cut_bytes, "byte"),
            plural(repaired.refilled, "record")
        ),
        Event::StatusDerived(derived) => derived.status.as_ref().into(),
        Event::Unknown { record, .. } => record.as_json().to_owned(),
        // Those of tasks are not in a session's log, nor in a ledger.
        other => pipeline_text::gist(other).unwrap_or_default(),
    }
}

/// Says which session took the place of one that was closed, behind whatever else is said of it; nothing if none did.
pub(crate) fn successor(session: Option<SessionId>) -> String {
    session.map_or_else(String::new, |session| format!(", {session} replaced it"))
}

fn by(who: Option<&str>) -> String {
    who.map_or_else(String::new, |who| format!("by {}", person(who)))
}

/// Returns who did something, for people: whoever owns the home is who mostly reads this.
pub(crate) fn person(who: &str) -> &str {
    if matches!(who, "local" | "user") { "you" } else { who }
}

/// Returns the word that stands for a value on disk.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        _ => String::new(),
    }
}

fn tool(status: Option<&str>, title: &str) -> String {
    status.map_or_else(|| title.to_owned(), |status| format!("{status}: {title}"))
}

pub(crate) fn plan_gist(entries: &Raw<'_>) -> String {
    let entries: Vec<Value> = serde_json::from_str(entries.as_json()).unwrap_or_default();
    let status = |entry: &Value, status: &str| entry["status"].as_str() == Some(status);
    let done = entries.iter().filter(|entry| status(entry, "completed")).count();
    let now = entries.iter().find(|entry| status(entry, "in_progress"));
    let now = now.and_then(|entry| entry["content"].as_str()).map(|now| format!(", now: {now}"));
    format!("{done} of {} steps done{}", entries.len(), now.unwrap_or_default())
}
