//! `rekindle waits`: who waits for an answer, and to what. Without a daemon the home itself is read.

use std::io::Write;

use rekindle_domain::event::Event;
use rekindle_domain::time::Clock;
use rekindle_store::offline::Offline;
use serde_json::{Value, json};

use super::Context;
use crate::client::{read, wire};
use crate::clock::SystemClock;
use crate::failure::{Exit, Failure};
use crate::live::{Ask, how_to_answer};
use crate::output::{self, BOLD, DIM, WARN, styled, when};
use crate::record_text::{payload, word};
use crate::sanitise;

/// List what agents ask and nobody has answered
///
/// A wait stays open for as long as nobody answers it, across restarts of everything but the agent. One that is
/// `void` lost its agent: an answer to it becomes a message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle waits
  rekindle waits --json | jq -r '.waits[].wait_id'")]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let mut out = output::stdout();
    let list = match context.daemon()? {
        Some(client) => {
            let body = client.get_raw("/api/waits")?;
            if context.json {
                output::json_line(&mut out, &body)?;
                return Ok(Exit::Ok);
            }
            read(&body)?
        }
        None => from_home(&context.offline()?)?,
    };
    if context.json {
        writeln!(out, "{list}")?;
    } else {
        let waits: wire::Waits =
            serde_json::from_value(list).map_err(|error| Failure::failed("answer_unreadable", error))?;
        show(&mut out, &waits.waits)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Reads the waits of a home that no daemon has.
fn from_home(home: &Offline) -> Result<Value, Failure> {
    let mut waits = Vec::new();
    let surveyed = home.survey(|id, loaded| {
        let Ok(loaded) = loaded else { return };
        let Some(run) = loaded.state.run.as_ref().filter(|_| !loaded.state.deleted) else { return };
        let state = if run.end.is_none() { "open" } else { "void" };
        for wait in &run.waits {
            let request = request(home, id, wait.since_seq);
            waits.push(json!({
                "wait_id": wait.wait_id, "session_id": id, "run_id": run.run_id, "kind": wait.kind, "state": state,
                "request": request, "since": wait.since, "deadline_at": wait.deadline_at,
            }));
        }
    });
    surveyed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
    waits.sort_by(|a, b| a["since"].as_str().cmp(&b["since"].as_str()));
    Ok(json!({ "waits": waits }))
}

/// Reads what was asked from the record that says so.
fn request(home: &Offline, session: rekindle_domain::id::SessionId, seq: u64) -> Option<Value> {
    let reader = home.reader(session).ok()?;
    let offset = reader.offset_of(seq).ok()??;
    let mut lines = reader.forward(offset);
    let raw = lines.next().ok()??;
    let line = rekindle_domain::line::Line::parse(raw.bytes).ok()?;
    match line.event().ok()? {
        Event::RunWaiting(waiting) => waiting.request.as_ref().map(|request| payload(request, &home.blobs())),
        _ => None,
    }
}

fn show(out: &mut impl Write, waits: &[wire::Wait]) -> Result<(), Failure> {
    let now = SystemClock.now();
    if waits.is_empty() {
        writeln!(out, "nobody waits for an answer")?;
    }
    for wait in waits {
        let ask = Ask::read(&wait.wait_id, &word(&wait.kind), &wait.request);
        let void =
            if wait.state == "void" { styled(WARN, "  void: its agent is gone") } else { String::new() };
        writeln!(
            out,
            "{}  {}{void}",
            styled(BOLD, sanitise::line(&wait.wait_id)),
            styled(DIM, &wait.session_id)
        )?;
        let until = wait.deadline_at.map(|at| format!(", until {at}")).unwrap_or_default();
        writeln!(out, "  {}", styled(DIM, format_args!("asked {}{until}", when(wait.since, now))))?;
        for (style, line) in ask.lines.iter().chain(&ask.options()) {
            writeln!(out, "  {}", styled(*style, line))?;
        }
        writeln!(out, "  {}", styled(DIM, how_to_answer(&ask)))?;
    }
    Ok(())
}
