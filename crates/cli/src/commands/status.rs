//! `rekindle status`: what a session is doing, since when, how that is known, and what to do next. Without a daemon the
//! home itself is read, and the holder's lock looked at.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::{Client, Exit, Failure, read};
use rekindle_display::checkpoint_text::files_text;
use rekindle_display::drift_text;
use rekindle_display::evidence_text;
use rekindle_display::live::Ask;
use rekindle_display::record_text::word;
use rekindle_display::status_text::{
    agent_lives, forked_from, held, is_unknown, meaning, next, silent_command, style, trouble, uncertain,
};
use rekindle_display::worktree_text::worktree_text;
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::Want;
use rekindle_terminal::output::{self, BOLD, DIM, plural, styled, when, wrap};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{HealthState, SessionView};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Unheard};
use crate::offline_session::{Looker, agent_presence, load_or_stand_in, read_last_words, to_json};
use crate::session_arg::SessionArg;

/// Show what a session is doing, since when, and how that is known
///
/// Asks the daemon if one runs; without one it reads the home and checks whether the agent is running. Changes nothing.
/// An interrupted session is not an error: the exit code says only whether the status could be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle status
  rekindle status 01khz0p6r8
  rekindle status 01khz0p6r8 --json | jq -r .status")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,
}

/// A name on the left, and what stands beside it.
type Row = (&'static str, String);

/// The width of the names on the left.
const NAME_WIDTH: usize = 10;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let asked = context.ask(|client| from_daemon(context, client, &args.session))?;
    let unheard = asked.as_ref().err().copied();
    let (told, tail) = match asked {
        Ok(told) => (told, None),
        Err(_) => from_home(context, &args.session)?,
    };
    let session: SessionView = read(told.get().as_bytes())?;
    context
        .print(&told, |out| write_rows(out, &session, &rows(&session, tail, unheard, SystemClock.now())))?;
    // It is shown as far as it can be read, which is not what was asked for.
    Ok(if trouble(&session).is_some() { Exit::Failed } else { Exit::Ok })
}

fn from_daemon(context: &Context, client: &Client, session: &SessionArg) -> Result<Box<RawValue>, Failure> {
    let id = session.find_live(context, client)?;
    client.get(&format!("/api/sessions/{id}"))
}

/// Reads a session from its home, and what a crash left behind its log.
fn from_home(context: &Context, session: &SessionArg) -> Result<(Box<RawValue>, Option<String>), Failure> {
    let home = context.offline()?;
    let id = session.find(&home)?;
    let (loaded, trouble) = load_or_stand_in(&home, id, home.examine(id, Want::Everything))?;
    let mut session = Looker::new(&home, SystemClock.now()).session(&loaded, trouble);
    session.last_words = read_last_words(&home, loaded.state.id);
    let mut told = to_json(&session, &loaded);
    // What the write-ahead log has is read as if it were in the log already. Nothing is cut off from a damaged log.
    if let Some(torn) = loaded.torn.filter(|_| loaded.damage.is_none()) {
        let (bytes, at) = (plural(torn.len, "byte"), torn.offset);
        let again = match agent_presence(&home, &loaded.state) {
            AgentPresence::Lives | AgentPresence::Silent | AgentPresence::Dead => {
                ", and records what the agent's holder still has"
            }
            AgentPresence::Nobody | AgentPresence::Vanished { .. } => "",
        };
        let text = format!(
            "the last {bytes}, from byte {at}, are an incomplete record, as a crash in the middle of a write leaves it; \
             the next use removes it{again}"
        );
        told["tail"] = json!(text);
    }
    let tail = told["tail"].as_str().map(str::to_owned);
    Ok((to_raw_value(&told).map_err(|error| Failure::failed("output", error))?, tail))
}

fn write_rows(out: &mut dyn Write, session: &SessionView, rows: &[Row]) -> Result<(), Failure> {
    let width = output::width();
    for (name, text) in rows {
        let indent = " ".repeat(NAME_WIDTH);
        let text = wrap(&sanitise::line(text), width, &indent, &indent);
        let text = text.get(NAME_WIDTH..).unwrap_or_default();
        // Styles come last: they take no columns, but would be counted.
        let shown = match *name {
            "status" => styled(style(session), text),
            "session" => text.replacen(session.id.as_str(), &styled(BOLD, session.id), 1),
            _ => text.to_owned(),
        };
        writeln!(out, "{}{shown}", styled(DIM, format_args!("{name:NAME_WIDTH$}")))?;
    }
    Ok(())
}

fn rows(session: &SessionView, tail: Option<String>, unheard: Option<Unheard>, now: Timestamp) -> Vec<Row> {
    let status = ("status", meaning(session, unheard.map(Unheard::text).as_deref()));
    let known = !is_unknown(session);
    let title = if known { format!("{} {}", session.id, session.title) } else { session.id.to_string() };
    let mut rows = vec![("session", title)];
    if known {
        rows.extend([("in", session.working_dir.clone()), ("agent", session.agent.clone())]);
        rows.extend(session.model.clone().map(|model| ("model", model)));
        rows.extend(session.mode.clone().map(|mode| ("mode", mode)));
    }
    rows.push(status);
    rows.extend(known.then(|| ("since", when(session.since, now))));
    rows.extend(session.worktree.as_ref().map(|worktree| ("branch", worktree_text(worktree))));
    rows.extend(forked_from(session).map(|from| ("forked", from)));
    let proofs = if known { evidence_text::sentences(&session.evidence, now) } else { Vec::new() };
    for (index, proof) in proofs.into_iter().enumerate() {
        rows.push((if index == 0 { "known by" } else { "" }, proof));
    }
    if let Some(unheard) = unheard {
        let kept = match unheard {
            _ if !agent_lives(session) => "",
            Unheard::None => "; its agent's output is kept for the next one",
            _ => "; its agent's output is kept",
        };
        rows.push(("daemon", format!("{}{kept}", unheard.daemon_text())));
    }
    rows.extend(session.run.as_ref().and_then(files_text).map(|files| ("files", files)));
    let budget = session.run.as_ref().and_then(|run| run.budget.as_ref());
    rows.extend(budget.map(|notice| ("budget", notice.to_string())));
    let drift = session.run.as_ref().and_then(|run| run.drift.as_ref());
    for (index, said) in drift.map(drift_text::sentences).unwrap_or_default().into_iter().enumerate() {
        rows.push((if index == 0 { "drift" } else { "" }, said));
    }
    if session.queued > 0 {
        rows.push(("queued", plural(session.queued as u64, "message")));
    }
    for (index, open) in uncertain(session).into_iter().enumerate() {
        rows.push((if index == 0 { "uncertain" } else { "" }, open));
    }
    rows.extend(held(session).map(|held| ("held", held.to_owned())));
    for wait in &session.waits {
        let ask = Ask::read(wait.wait_id.as_str(), &word(&wait.kind), &wait.asked());
        rows.push(("asks", ask.gist()));
    }
    if session.health.state != HealthState::Ok {
        let health = &session.health;
        let detail = health.detail.as_deref().unwrap_or_default();
        let rest = if is_unknown(session) { "" } else { "what is before it can be read and " };
        let text = match health.state {
            HealthState::Damaged => format!("damaged {detail}; {rest}nothing can be added"),
            other => format!("{other}: {detail}"),
        };
        rows.push(("health", text));
    }
    rows.extend(tail.map(|tail| ("tail", tail)));
    rows.extend(silent_command(session).map(|hint| ("silent", hint.to_owned())));
    rows.push(("next", next(session)));
    rows
}
