//! A session as it is shown without a daemon: in the daemon's shape, from its log and from what is seen of its holder.

use std::path::Path;

use rekindle_client::payloads::Payloads;
use rekindle_display::record_text::payload;
use rekindle_domain::event::Event;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::{HolderProof, Observed, SessionStatus, project, wait_state};
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::{Now, Timestamp};
use rekindle_service::boottime::BootClock;
use rekindle_service::error::unloadable;
use rekindle_service::{
    held_without_daemon, last_words, look_for_holder, run_end_reason, run_view, session_view,
};
use rekindle_store::home;
use rekindle_store::offline::Offline;
use rekindle_store::{LoadError, Loaded};
use rekindle_wire::view::{Health, HealthState, SessionView, WaitView};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

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
        let steady = BootClock::known(&**home.disk(), home.layout().home());
        let now = Now { wall: now, steady: steady.map_or(now, |steady| steady.now()) };
        Looker { home, boot, now }
    }

    /// Shows a session, with the trouble there is with it. Its holder's lock tells whether the agent lives; nobody is spoken to.
    pub(crate) fn session(&self, loaded: &Loaded, trouble: Option<Health>) -> SessionView {
        let state = &loaded.state;
        let found = agent_presence(self.home, state);
        let holder = found.proof().unwrap_or(HolderProof::Pending);
        let observed = Observed { boot: self.boot, holder, now: self.now };
        let derived = project(state, &loaded.tokens, &observed);
        let is_cut =
            !matches!(derived.status, SessionStatus::Idle | SessionStatus::Running | SessionStatus::Waiting);
        let waits = waits(self.home, loaded, found);
        let ended = state.run.as_ref().is_some_and(|run| run.end.is_some());
        let log = if ended { self.home.reader(state.id).ok() } else { None };
        let run = run_view(state, log.and_then(|log| run_end_reason(state, &log)));
        let unrestored = "its files are not all restored yet: the next daemon continues with that";
        let policy = || held_without_daemon(state).filter(|_| is_cut).map(|held| held.words().to_owned());
        SessionView {
            held: state.restoring.as_ref().map(|_| unrestored.to_owned()).or_else(policy),
            health: trouble.unwrap_or_else(|| health(loaded)),
            ..session_view(state, derived, run, waits)
        }
    }
}

/// Writes a session as `--json` has it without a daemon: with its id under both its names, and the byte where its log is
/// damaged.
pub(crate) fn to_json(session: &SessionView, loaded: &Loaded) -> Value {
    let mut told = json!(session);
    told["session_id"] = json!(session.id);
    if let Some(damage) = &loaded.damage {
        told["health"]["offset"] = json!(damage.offset);
    }
    told
}

/// Reads what a session's agent said last.
pub(crate) fn read_last_words(home: &Offline, session: SessionId) -> Option<String> {
    last_words(&home.reader(session).ok()?)
}

/// Says whether a session is whole, as far as its log was read.
pub(crate) fn health(loaded: &Loaded) -> Health {
    match &loaded.damage {
        Some(damage) => Health { state: HealthState::Damaged, detail: Some(damage.to_string()) },
        None => Health { state: HealthState::Ok, detail: None },
    }
}

/// Loads a session to show it. One that cannot be loaded is shown as far as it can be read, with the reason.
pub(crate) fn load_or_stand_in(
    home: &Offline,
    session: SessionId,
    loaded: Result<Loaded, LoadError>,
) -> Result<(Loaded, Option<Health>), LoadError> {
    match loaded {
        Ok(loaded) => Ok((loaded, None)),
        Err(error @ LoadError::NotFound(_)) => Err(error),
        Err(error) => {
            let found = home.stand_in(session);
            let trouble = found.damage.is_none().then(|| unloadable(&error));
            Ok((found, trouble))
        }
    }
}

/// Looks what is left of a session's agent.
pub(crate) fn agent_presence(home: &Offline, state: &SessionState) -> AgentPresence {
    look_for_holder(&home.layout().home().join("holders"), state)
}

/// Shows the waits of a session, open and void: an agent that is proven gone hears no answer.
pub(crate) fn waits(home: &Offline, loaded: &Loaded, found: AgentPresence) -> Vec<WaitView> {
    let state = &loaded.state;
    let Some(run) = state.run.as_ref().filter(|_| !state.deleted) else { return Vec::new() };
    let holder = found.proof().unwrap_or(HolderProof::Pending);
    let wait = |wait: &rekindle_domain::session::Wait| WaitView {
        wait_id: wait.wait_id,
        session_id: state.id,
        run_id: run.run_id,
        kind: wait.kind.into(),
        state: wait_state(run, wait, holder).into(),
        request: request(home, state.id, wait.since_seq),
        since: wait.since,
        deadline_at: wait.deadline_at,
        how: None,
        answer: None,
    };
    run.waits.iter().map(wait).collect()
}

/// Reads what was asked from the record that says so.
fn request(home: &Offline, session: SessionId, seq: u64) -> Option<Box<RawValue>> {
    let reader = home.reader(session).ok()?;
    let mut lines = reader.forward(reader.find(seq).ok()??);
    let raw = lines.next().ok()??;
    let line = Line::parse(raw.bytes).ok()?;
    match line.event().ok()? {
        Event::RunWaiting(waiting) => {
            to_raw_value(&payload(waiting.request.as_ref()?, &Payloads::Here(home.blobs()))).ok()
        }
        _ => None,
    }
}

/// Tells whether a session works in a directory or below it.
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    Path::new(path).starts_with(directory)
}
