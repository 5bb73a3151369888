//! A session as it is shown without a daemon: in the daemon's shape, from its log and from what is seen of its holder.

use std::path::Path;

use rekindle_domain::event::{Event, Provider};
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::{HolderProof, Observed, project, wait_state};
use rekindle_domain::recovery::Found;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::{Now, Timestamp};
use rekindle_service::boottime::Steady;
use rekindle_service::error::{LEFT_ALONE, chain};
use rekindle_service::{last_words, look_for_holder, run_view};
use rekindle_store::home;
use rekindle_store::offline::Offline;
use rekindle_store::{LoadError, Loaded};
use serde_json::{Value, json};

use crate::payloads::Payloads;
use crate::record_text::payload;

/// Whoever looks at sessions: where, and when.
pub(crate) struct Looker<'a> {
    home: &'a Offline,
    boot: Option<BootId>,
    now: Now,
}

impl<'a> Looker<'a> {
    /// Begins to look. Whoever owns the home is the daemon of this moment; without one there is no boot to compare with.
    pub(crate) fn new(home: &'a Offline, now: Timestamp) -> Looker<'a> {
        let boot = home::owner(&**home.disk(), home.layout()).and_then(|owner| owner.boot_id);
        let steady = Steady::known(&**home.disk(), home.layout().home());
        let now = Now { wall: now, steady: steady.map_or(now, |steady| steady.now()) };
        Looker { home, boot, now }
    }

    /// Shows a session. Its holder's lock tells whether the agent lives; nobody is spoken to.
    pub(crate) fn session(&self, loaded: &Loaded) -> Value {
        let state = &loaded.state;
        let found = look(self.home, state);
        let holder = found.proof().unwrap_or(HolderProof::Pending);
        let observed = Observed { boot: self.boot, holder, now: self.now };
        let derived = project(state, &loaded.tokens, &observed);
        let waits = waits(self.home, loaded, found);
        json!({
            "id": state.id, "session_id": state.id, "title": state.title, "working_dir": state.working_dir, "profile": state.provider.profile,
            "agent": agent_name(&state.provider), "status": derived.status, "since": derived.since,
            "evidence": derived.evidence, "last_seq": state.last_seq,
            "run": run_view(state, || self.home.reader(state.id).ok()),
            "wait": waits.iter().find(|wait| wait["state"] == "open"), "waits": waits,
            "queued": state.queue.len(), "usage": state.usage.shown(), "created_at": state.created_at, "updated_at": state.updated_at,
            "cursor": state.agent.as_ref().and_then(|agent| agent.cursor.as_ref()),
            "health": health(loaded),
        })
    }
}

/// Reads what a session's agent said last.
pub(crate) fn words(home: &Offline, session: SessionId) -> Option<String> {
    last_words(&home.reader(session).ok()?)
}

/// Says whether a session is whole, as far as its log was read.
pub(crate) fn health(loaded: &Loaded) -> Value {
    match &loaded.damage {
        Some(damage) => json!({"state": "damaged", "detail": damage.to_string(), "offset": damage.offset}),
        None => json!({"state": "ok"}),
    }
}

/// Loads a session to show it. One that cannot be loaded is shown as far as it can be read, with the reason.
pub(crate) fn shown(
    home: &Offline,
    session: SessionId,
    loaded: Result<Loaded, LoadError>,
) -> Result<(Loaded, Option<Value>), LoadError> {
    match loaded {
        Ok(loaded) => Ok((loaded, None)),
        Err(error @ LoadError::NotFound(_)) => Err(error),
        Err(error) => {
            let found = home.stand_in(session);
            let trouble = json!({"state": "degraded", "detail": format!("{}; {LEFT_ALONE}", chain(&error))});
            let trouble = found.damage.is_none().then_some(trouble);
            Ok((found, trouble))
        }
    }
}

/// Looks what is left of a session's agent.
pub(crate) fn look(home: &Offline, state: &SessionState) -> Found {
    look_for_holder(&home.layout().home().join("holders"), state)
}

/// Shows the waits of a session, open and void: an agent that is proven gone hears no answer.
pub(crate) fn waits(home: &Offline, loaded: &Loaded, found: Found) -> Vec<Value> {
    let state = &loaded.state;
    let Some(run) = state.run.as_ref().filter(|_| !state.deleted) else { return Vec::new() };
    let holder = found.proof().unwrap_or(HolderProof::Pending);
    let wait = |wait: &rekindle_domain::session::Wait| {
        let word = wait_state(run, wait, holder).as_str();
        json!({
            "wait_id": wait.wait_id, "session_id": state.id, "run_id": run.run_id, "kind": wait.kind, "state": word,
            "request": request(home, state.id, wait.since_seq), "since": wait.since, "deadline_at": wait.deadline_at,
        })
    };
    run.waits.iter().map(wait).collect()
}

/// Reads what was asked from the record that says so.
fn request(home: &Offline, session: SessionId, seq: u64) -> Option<Value> {
    let reader = home.reader(session).ok()?;
    let mut lines = reader.forward(reader.find(seq).ok()??);
    let raw = lines.next().ok()??;
    let line = Line::parse(raw.bytes).ok()?;
    match line.event().ok()? {
        Event::RunWaiting(waiting) => {
            waiting.request.as_ref().map(|request| payload(request, &Payloads::Here(home.blobs())))
        }
        _ => None,
    }
}

/// Returns what people call an agent, as the daemon does: its name, or its program's.
fn agent_name(provider: &Provider) -> &str {
    let program = provider.command.as_ref().and_then(|command| command.first());
    let program = program.map(|program| program.rsplit('/').next().unwrap_or(program));
    provider.agent.as_deref().or(program).unwrap_or(&provider.profile)
}

/// Tells whether a session works in a directory or below it.
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    Path::new(path).starts_with(directory)
}
