//! A session's status as its daemon tells it, with what can be done next.

use std::io::Write;

use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::Clock;

use super::Context;
use super::ps::style;
use crate::client::{Client, read, wire};
use crate::clock::SystemClock;
use crate::evidence_text;
use crate::failure::{Exit, Failure};
use crate::live::Ask;
use crate::output::{self, DIM, plural, styled, when, wrap};
use crate::sanitise;
use crate::session_arg::SessionArg;

/// The width of the names on the left.
const ROW: usize = 10;

pub(super) fn run(context: &Context, client: &Client, session: &SessionArg) -> Result<Exit, Failure> {
    let id = session.find_live(context, client)?;
    let body = client.get_raw(&format!("/api/sessions/{id}"))?;
    let mut out = output::stdout();
    if context.json {
        output::json_line(&mut out, &body)?;
        return Ok(Exit::Ok);
    }
    let session: wire::Session = read(&body)?;
    let width = output::width();
    for (name, text) in rows(&session) {
        let indent = " ".repeat(ROW);
        let text = wrap(&sanitise::line(&text), width, &indent, &indent);
        let text = text.get(ROW..).unwrap_or_default();
        let shown = if name == "status" { styled(style(session.status), text) } else { text.to_owned() };
        writeln!(out, "{}{shown}", styled(DIM, format_args!("{name:ROW$}")))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

fn rows(session: &wire::Session) -> Vec<(&'static str, String)> {
    let now = SystemClock.now();
    let mut rows = vec![
        ("session", format!("{} {}", session.id, session.title)),
        ("in", session.working_dir.clone()),
        ("agent", session.agent.clone()),
        ("status", session.status.to_string()),
        ("since", when(session.since, now)),
    ];
    for (index, known) in evidence_text::sentences(&session.evidence, now).into_iter().enumerate() {
        rows.push((if index == 0 { "known by" } else { "" }, known));
    }
    if session.queued > 0 {
        rows.push(("queued", plural(session.queued as u64, "message")));
    }
    rows.extend(session.held.clone().map(|held| ("held", held)));
    for wait in &session.waits {
        let ask = Ask::read(&wait.wait_id, &wait.kind, &wait.request);
        rows.extend(ask.lines.first().map(|(_, line)| ("asks", line.clone())));
    }
    if let Some(health) = session.health.as_ref().filter(|health| health.state != "ok") {
        rows.push(("health", format!("{}: {}", health.state, health.detail.as_deref().unwrap_or_default())));
    }
    rows.push(("next", next(session)));
    rows
}

/// Says what can be done now.
fn next(session: &wire::Session) -> String {
    let id = &session.id;
    match session.status {
        SessionStatus::InterruptedStartup
        | SessionStatus::InterruptedWaiting
        | SessionStatus::InterruptedAgent => format!("rekindle resume {id} continues it"),
        SessionStatus::Waiting => match session.waits.first() {
            Some(wait) => {
                format!("rekindle answer {} OPTION; rekindle waits shows the options", wait.wait_id)
            }
            None => "rekindle waits shows what is asked".into(),
        },
        SessionStatus::Running => format!("rekindle attach {id} watches it"),
        SessionStatus::Idle => format!("rekindle send {id} TEXT goes on with it"),
    }
}
