//! `rekindle status`: what a session is doing, since when, how that is known, and what to do next.
//! The status itself is derived by the domain; this puts it into words.

use std::io::Write;

use clap::builder::styling::Style;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::{Derived, HolderEvidence, HolderProof, Observed, SessionStatus, project};
use rekindle_domain::session::{End, SessionState};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::home;
use rekindle_store::{Loaded, Want};
use serde::Serialize;
use serde_json::json;

use super::Context;
use crate::clock::SystemClock;
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, BOLD, COURSE, DIM, GOOD, WARN, plural, styled, when, wrap};
use crate::sanitise;
use crate::session_arg::SessionArg;

/// Show what a session is doing, since when, and how that is known
///
/// Asks the daemon if one runs; works without one too, and changes nothing. An interrupted session is no error: the exit code says only
/// whether the status could be told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle status 01khz0p6r8
  rekindle status 01khz0p6r8 --json | jq -r .status")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,
}

/// A session's status as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    id: SessionId,
    session_id: SessionId,
    title: &'a str,
    #[serde(flatten)]
    derived: &'a Derived,
    health: serde_json::Value,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if let Some(client) = context.daemon()? {
        return super::status_live::run(context, &client, &args.session);
    }
    let home = context.offline()?;
    let session = args.session.find(&home)?;
    let loaded = home.load(session, Want::Everything)?;
    // Whoever owns the home is the daemon of this moment; without one there is no boot to compare with.
    let owner = home::owner(&**home.disk(), home.layout());
    let wall = SystemClock.now();
    let observed =
        Observed { boot: owner.and_then(|owner| owner.boot_id), holder: HolderProof::Pending, wall };
    let derived = project(&loaded.state, &loaded.tokens, &observed);
    let mut out = output::stdout();
    if context.json {
        let health = health(&loaded);
        let shown =
            Shown { id: session, session_id: session, title: &loaded.state.title, derived: &derived, health };
        let text = serde_json::to_string(&shown).map_err(|error| Failure::failed("output", error))?;
        writeln!(out, "{text}")?;
    } else {
        print_text(&mut out, session, &loaded, &derived, wall)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

fn health(loaded: &Loaded) -> serde_json::Value {
    match &loaded.damage {
        Some(damage) => json!({"state": "damaged", "detail": damage.detail, "offset": damage.offset}),
        None => json!({"state": "ok"}),
    }
}

fn print_text(
    out: &mut impl Write,
    session: SessionId,
    loaded: &Loaded,
    derived: &Derived,
    now: Timestamp,
) -> Result<(), Failure> {
    let state = &loaded.state;
    let width = output::width();
    let mut row = |name: &str, lead: (Style, &str), text: &str| {
        let (style, lead) = lead;
        let indent = " ".repeat(ROW);
        // Styles come last: they take no columns, but would be counted.
        let wrapped = wrap(&format!("{lead} {text}"), width, &indent, &indent);
        let text = wrapped.get(ROW..).unwrap_or_default().replacen(lead, &styled(style, lead), 1);
        writeln!(out, "{}{text}", styled(DIM, format_args!("{name:ROW$}")))
    };
    row("session", (BOLD, session.as_str()), &sanitise::line(&state.title))?;
    row("in", PLAIN, &sanitise::line(&state.working_dir))?;
    let style = match derived.status {
        SessionStatus::InterruptedStartup
        | SessionStatus::InterruptedWaiting
        | SessionStatus::InterruptedAgent => BAD,
        SessionStatus::Waiting => WARN,
        SessionStatus::Running => COURSE,
        SessionStatus::Idle => GOOD,
    };
    let status = format!("{}:", derived.status);
    row("status", (style, &status), &meaning(state, derived))?;
    row("since", PLAIN, &when(derived.since, now))?;
    for (index, known) in evidence(state, derived, now).iter().enumerate() {
        row(if index == 0 { "known by" } else { "" }, PLAIN, known)?;
    }
    if let Some(torn) = loaded.torn {
        let text = format!(
            "a crash left {} at byte {} that never became records; the next use cuts them off",
            plural(torn.len, "byte"),
            torn.offset
        );
        row("tail", PLAIN, &text)?;
    }
    if let Some(damage) = &loaded.damage {
        let text = format!(
            "at byte {}: {}; what is before it can be read and nothing can be added; rekindle doctor says what can be done",
            damage.offset, damage.detail
        );
        row("health", (BAD, "damaged"), &text)?;
    }
    row("next", PLAIN, &next(session, derived))?;
    Ok(())
}

/// A row that begins with nothing special.
const PLAIN: (Style, &str) = (output::PLAIN, "");

/// The width of the names on the left.
const ROW: usize = 10;

/// Says what a status means for this session.
fn meaning(state: &SessionState, derived: &Derived) -> String {
    let run = state.run.as_ref();
    let wait = run.and_then(|run| run.waits.first()).map(|wait| word(&wait.kind));
    let wait = wait.as_deref().unwrap_or("an answer");
    match derived.status {
        SessionStatus::InterruptedStartup => match run.and_then(|run| run.end) {
            Some(End::Interrupted { reason, .. }) => format!("its run was cut by: {}", word(&reason)),
            _ => "its run was cut by a restart; nothing of its agent is left".into(),
        },
        SessionStatus::InterruptedWaiting => {
            format!("its run waited for: {wait}, and can no longer be answered as it was asked")
        }
        SessionStatus::InterruptedAgent => "its run was cut because the agent ended".into(),
        SessionStatus::Waiting => format!("its run waits for: {wait}"),
        SessionStatus::Running => match derived.evidence.holder {
            Some(HolderEvidence { proof: HolderProof::Pending | HolderProof::Unresponsive, .. }) => {
                "its run goes on, as far as the log tells".into()
            }
            Some(_) | None => "its run goes on".into(),
        },
        SessionStatus::Idle => match run.and_then(|run| run.end) {
            None => "nothing was asked of it yet".into(),
            Some(End::Failed) => "its last run failed".into(),
            Some(End::Cancelled) => "its last run was cancelled".into(),
            Some(End::Completed | End::Interrupted { .. }) => "its last run is completed".into(),
        },
    }
}

fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

/// Says how the status is known.
fn evidence(state: &SessionState, derived: &Derived, now: Timestamp) -> Vec<String> {
    let evidence = &derived.evidence;
    let mut known = vec![format!("record {} of its log, {}", evidence.last_seq, when(state.updated_at, now))];
    if let Some(holder) = &evidence.holder {
        let process = holder.process.map(|process| format!(" (process {})", process.pid)).unwrap_or_default();
        let proof = match holder.proof {
            HolderProof::Pending => "is recorded, and nobody has looked whether it lives",
            HolderProof::Lock => "lives and answers",
            HolderProof::Unresponsive => "lives and does not answer",
            HolderProof::Gone => "is gone: its end is recorded",
        };
        known.push(format!("holder {}{process} {proof}", holder.id));
    } else if state.open_run().is_some() {
        known.push("no holder is recorded for the run".into());
    }
    if let Some(at) = evidence.last_output_at {
        known.push(format!("the agent's last words, {}", when(at, now)));
    }
    if let Some(wait) = evidence.open_wait {
        known.push(format!("{wait} is open"));
    }
    known
}

/// Says what can be done now.
fn next(session: SessionId, derived: &Derived) -> String {
    let id = session.as_str();
    match derived.status {
        SessionStatus::InterruptedStartup
        | SessionStatus::InterruptedWaiting
        | SessionStatus::InterruptedAgent => {
            format!("rekindle log {id} --last 20 shows where it was cut")
        }
        SessionStatus::Waiting => format!("rekindle log {id} --last 5 shows what is asked"),
        SessionStatus::Running => format!("rekindle log {id} --last 20 shows what it does"),
        SessionStatus::Idle => format!("rekindle log {id} shows what it did"),
    }
}
