//! From state to what is shown.

use rekindle_domain::event::{Event, Raw, WaitKind};
use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::{Derived, HolderProof, Observed, project, wait_state};
use rekindle_domain::recovery::{Circumstances, Found, Step, next_step};
use rekindle_domain::session::{Run, SessionState, Wait};
use rekindle_domain::token::TokenIndex;
use rekindle_store::log::Cursor;
use serde_json::value::RawValue;

use super::run_view::run_view;
use crate::core::Core;
use crate::drive::agents;
use crate::drive::live::{wanted, whole};
use crate::drive::worker::Seen;
use crate::error::LEFT_ALONE;
use crate::show::directory::Entry;
use crate::show::view::{Health, SessionView, WaitView};

/// Characters of a question that are told again.
const MOST_ASKED: usize = 500;

/// Shows a session.
pub(crate) fn session(core: &Core, entry: &Entry) -> SessionView {
    let state = &*entry.state;
    let seen = core.workers.seat(state.id).map(|seat| seat.seen());
    let derived = derived(core, state, &entry.tokens, seen.as_ref());
    let waits: Vec<WaitView> = waits(core, entry);
    let spoken = seen.as_ref().and_then(|seen| seen.spoken.words());
    let open = || waits.iter().position(|wait| wait.state == "open");
    SessionView {
        id: state.id,
        title: state.title.clone(),
        working_dir: state.working_dir.clone(),
        agent: agent_name(state),
        model: state.provider.model.clone(),
        mode: wanted(state).mode,
        known_agent: agents::known_agent(&state.provider).map(|known| known.id.to_owned()),
        missing_env: agents::missing_env(core, state),
        profile: state.provider.profile.clone(),
        status: derived.status,
        since: derived.since,
        evidence: derived.evidence,
        connection: seen.as_ref().map(|seen| seen.link).unwrap_or_default(),
        last_seq: state.last_seq,
        run: run_view(state, || core.store.reader(state.id).ok()),
        wait: open().and_then(|at| state.run.as_ref().map(|run| wait(core, state.id, run, &run.waits[at]))),
        waits,
        queued: state.queue.len(),
        held: held(core, state, seen),
        usage: state.usage.shown(),
        cursor: state.agent.as_ref().and_then(|agent| agent.cursor.clone()),
        created_at: state.created_at,
        updated_at: state.updated_at,
        last_words: spoken.or_else(|| core.last_words.of(&core.store, state.id)),
        health: match (&entry.damage, &entry.trouble) {
            (Some(damage), _) => Health { state: "damaged", detail: Some(damage.to_string()) },
            (None, Some(trouble)) => {
                Health { state: "degraded", detail: Some(format!("{trouble}; {LEFT_ALONE}")) }
            }
            (None, None) => match core.store.behind(state.id) {
                Some(why) => Health { state: "degraded", detail: Some(behind(&why)) },
                None => Health { state: "ok", detail: None },
            },
        },
    }
}

/// Says what is the matter with a session whose log lacks records.
fn behind(why: &str) -> String {
    format!(
        "its log cannot be written: {why}; everything that was recorded is safe in the write-ahead log, and is written as soon as that works"
    )
}

/// Derives the status of a session from what is known of it here.
pub(crate) fn status(core: &Core, state: &SessionState, tokens: &TokenIndex) -> Derived {
    let seen = core.workers.seat(state.id).map(|seat| seat.seen());
    derived(core, state, tokens, seen.as_ref())
}

fn derived(core: &Core, state: &SessionState, tokens: &TokenIndex, seen: Option<&Seen>) -> Derived {
    let observed = Observed {
        boot: Some(core.supervisor.boot_id),
        holder: seen.and_then(|seen| seen.holder).unwrap_or(HolderProof::Pending),
        now: core.time(),
    };
    let mut derived = project(state, tokens, &observed);
    // Words that are in no record yet are words too.
    let heard = seen.and_then(|seen| seen.heard_at);
    derived.evidence.last_output_at = derived.evidence.last_output_at.max(heard);
    derived
}

/// Why nothing happens by itself: what the worker says, or what would be decided if there were no agent.
fn held(core: &Core, state: &SessionState, seen: Option<Seen>) -> Option<String> {
    if let Some(held) = seen.and_then(|seen| seen.held).or_else(|| core.workers.missed.why(state.id)) {
        return Some(held);
    }
    // A run that no agent has waits for one; its worker has long gone.
    let alone = state.agent.as_ref().is_none_or(|agent| agent.exited);
    if alone && state.open_run().is_some_and(|run| run.cancel.is_none()) {
        return agents::lacks_environment(core, state);
    }
    state.recovery.interruption.as_ref()?;
    let about = Circumstances {
        found: Found::Nobody,
        has_directory: std::path::Path::new(&state.working_dir).is_dir(),
        has_environment: agents::lacks_environment(core, state).is_none(),
        failed_launches: 0,
        shortage: None,
        interrupted_for: std::time::Duration::MAX,
        load_in: std::time::Duration::ZERO,
    };
    match next_step(state, &about) {
        Step::Rest(held) => held.map(|held| agents::held_words(core, state, held)),
        _ => None,
    }
}

/// Returns the name of a session's agent, or of its command.
pub(crate) fn agent_name(state: &SessionState) -> String {
    let command = state.provider.command.as_ref().and_then(|command| command.first());
    let program = command.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
    state.provider.agent.clone().or(program).unwrap_or_else(|| state.provider.profile.clone())
}

/// Shows the waits of a session, open and void.
pub(crate) fn waits(core: &Core, entry: &Entry) -> Vec<WaitView> {
    let Some(run) = &entry.state.run else { return Vec::new() };
    run.waits.iter().map(|one| wait(core, entry.state.id, run, one)).collect()
}

/// Shows one wait of a session.
pub(crate) fn wait_of(core: &Core, entry: &Entry, wait_id: WaitId) -> Option<WaitView> {
    let run = entry.state.run.as_ref()?;
    Some(wait(core, entry.state.id, run, run.wait(wait_id)?))
}

fn wait(core: &Core, session_id: SessionId, run: &Run, wait: &Wait) -> WaitView {
    let seen = core.workers.seat(session_id).and_then(|seat| seat.seen().holder);
    WaitView {
        wait_id: wait.wait_id,
        session_id,
        run_id: run.run_id,
        kind: kind(wait.kind),
        state: wait_state(run, wait, seen.unwrap_or(HolderProof::Pending)).as_str(),
        request: request(core, session_id, wait),
        since: wait.since,
        deadline_at: wait.deadline_at,
        how: None,
        answer: None,
    }
}

fn kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Permission => "permission",
        WaitKind::Question => "question",
        WaitKind::ToolResult => "tool_result",
        WaitKind::External | WaitKind::Unknown => "external",
    }
}

/// Shows a wait that is over, as the log has it: none if it has no such wait.
pub(crate) fn ended_wait(core: &Core, session_id: SessionId, wait_id: WaitId) -> Option<WaitView> {
    let reader = core.store.reader(session_id).ok()?;
    let mut lines = reader.forward(Cursor::START);
    let mut found: Option<WaitView> = None;
    let fetched = |raw: Raw<'_>| {
        let fetched = whole(&core.store, &raw).ok()?;
        RawValue::from_string(fetched.as_json().to_owned()).ok()
    };
    while let Ok(Some(raw)) = lines.next() {
        let Ok(line) = Line::parse(raw.bytes) else { continue };
        if !matches!(line.kind, "run.waiting" | "run.resumed") {
            continue;
        }
        match line.event() {
            Ok(Event::RunWaiting(waiting)) if waiting.wait_id == wait_id => {
                found = Some(WaitView {
                    wait_id,
                    session_id,
                    run_id: waiting.run_id,
                    kind: kind(waiting.wait_kind),
                    state: "ended",
                    request: waiting.request.and_then(fetched),
                    since: line.happened_at(),
                    deadline_at: waiting.deadline_at,
                    how: None,
                    answer: None,
                });
            }
            Ok(Event::RunResumed(resumed)) if resumed.wait_id == wait_id => {
                if let Some(found) = &mut found {
                    let how = serde_json::to_value(resumed.how).ok();
                    found.how = how.and_then(|how| how.as_str().map(str::to_owned));
                    found.answer = resumed.answer.and_then(fetched);
                }
                return found;
            }
            _ => {}
        }
    }
    found
}

/// Returns what a wait is about, in few words.
pub(crate) fn asked(core: &Core, entry: &Entry, wait: WaitId) -> Option<String> {
    let wait = entry.state.run.as_ref()?.wait(wait)?;
    let request: serde_json::Value = serde_json::from_str(request(core, entry.state.id, wait)?.get()).ok()?;
    let places = ["/params/toolCall/title", "/params/message", "/params/question"];
    let words = places.iter().find_map(|place| request.pointer(place)?.as_str())?;
    Some(words.chars().take(MOST_ASKED).collect())
}

/// Returns what a wait is about, as it was asked.
pub(crate) fn request_of(core: &Core, entry: &Entry, wait: WaitId) -> Option<Raw<'static>> {
    let wait = entry.state.run.as_ref()?.wait(wait)?;
    Raw::from_value(&request(core, entry.state.id, wait)?).ok()
}

/// Reads what the agent asked from the record that began the wait.
fn request(core: &Core, session: SessionId, wait: &Wait) -> Option<Box<RawValue>> {
    let reader = core.store.reader(session).ok()?;
    let mut lines = reader.forward(reader.find(wait.since_seq).ok()??);
    let raw = lines.next().ok()??;
    let line = Line::parse(raw.bytes).ok()?;
    match line.event().ok()? {
        Event::RunWaiting(waiting) => {
            let request = whole(&core.store, &waiting.request?).ok()?;
            RawValue::from_string(request.as_json().to_owned()).ok()
        }
        _ => None,
    }
}
