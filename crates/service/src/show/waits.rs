//! Waits as they are shown: open, void or over, with what was asked.

use rekindle_domain::event::{Event, Raw};
use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::{HolderProof, wait_state};
use rekindle_domain::session::{Run, SessionState, Wait};
use rekindle_wire::view::{WaitState, WaitView};
use serde_json::value::RawValue;

use super::Views;
use super::directory::SessionEntry;
use crate::drive::live::fetch_payload;
use crate::log_search::for_each_line;
use crate::storage::Sessions;

/// Characters of a question that are told again.
const MOST_ASKED: usize = 500;

impl Views {
    /// Shows the waits of a session, open and void.
    pub(crate) fn waits(&self, entry: &SessionEntry) -> Vec<WaitView> {
        let Some(run) = &entry.state.run else { return Vec::new() };
        run.waits.iter().map(|one| self.wait(entry.state.id, run, one)).collect()
    }

    /// Shows one wait of a session.
    pub(crate) fn wait_of(&self, entry: &SessionEntry, wait_id: WaitId) -> Option<WaitView> {
        let run = entry.state.run.as_ref()?;
        Some(self.wait(entry.state.id, run, run.wait(wait_id)?))
    }

    fn wait(&self, session_id: SessionId, run: &Run, wait: &Wait) -> WaitView {
        let seen = self.workers.pool.get(session_id).and_then(|seat| seat.sighting().holder);
        WaitView {
            wait_id: wait.wait_id,
            session_id,
            run_id: run.run_id,
            kind: wait.kind.into(),
            state: wait_state(run, wait, seen.unwrap_or(HolderProof::Pending)).into(),
            request: request(self.store(), session_id, wait),
            since: wait.since,
            deadline_at: wait.deadline_at,
            how: None,
            answer: None,
        }
    }
}

/// Shows a wait that is over, as the log has it: none if it has no such wait.
pub(crate) fn ended_wait(store: &dyn Sessions, session_id: SessionId, wait_id: WaitId) -> Option<WaitView> {
    let mut found: Option<WaitView> = None;
    let fetched = |raw: Raw<'_>| {
        let fetched = fetch_payload(store, &raw).ok()?;
        RawValue::from_string(fetched.as_json().to_owned()).ok()
    };
    // What cannot be read to its end is told as far as it was read.
    let _ = for_each_line(&store.reader(session_id).ok()?, |line| {
        if !matches!(line.kind, "run.waiting" | "run.resumed") {
            return;
        }
        match (line.event(), &mut found) {
            (Ok(Event::RunWaiting(waiting)), _) if waiting.wait_id == wait_id => {
                found = Some(WaitView {
                    wait_id,
                    session_id,
                    run_id: waiting.run_id,
                    kind: waiting.wait_kind.into(),
                    state: WaitState::Ended,
                    request: waiting.request.and_then(fetched),
                    since: line.happened_at(),
                    deadline_at: waiting.deadline_at,
                    how: None,
                    answer: None,
                });
            }
            (Ok(Event::RunResumed(resumed)), Some(found)) if resumed.wait_id == wait_id => {
                found.how = Some(resumed.how.as_str().to_owned());
                found.answer = resumed.answer.and_then(fetched);
            }
            _ => {}
        }
    });
    found
}

/// Returns what a request is about, in few words.
pub(crate) fn request_summary(request: &Raw<'_>) -> Option<String> {
    let request: serde_json::Value = serde_json::from_str(request.as_json()).ok()?;
    let places = ["/params/toolCall/title", "/params/message", "/params/question"];
    let words = places.iter().find_map(|place| request.pointer(place)?.as_str())?;
    Some(words.chars().take(MOST_ASKED).collect())
}

/// Returns what a wait is about, as it was asked.
pub(crate) fn request_of(store: &dyn Sessions, state: &SessionState, wait: WaitId) -> Option<Raw<'static>> {
    let wait = state.run.as_ref()?.wait(wait)?;
    Raw::from_value(&request(store, state.id, wait)?).ok()
}

/// Reads what the agent asked from the record that began the wait.
fn request(store: &dyn Sessions, session: SessionId, wait: &Wait) -> Option<Box<RawValue>> {
    let reader = store.reader(session).ok()?;
    let mut lines = reader.forward(reader.find(wait.since_seq).ok()??);
    let raw = lines.next().ok()??;
    let line = Line::parse(raw.bytes).ok()?;
    match line.event().ok()? {
        Event::RunWaiting(waiting) => {
            let request = fetch_payload(store, &waiting.request?).ok()?;
            RawValue::from_string(request.as_json().to_owned()).ok()
        }
        _ => None,
    }
}
