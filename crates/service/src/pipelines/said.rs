//! What an agent said in a run, as the log of its session has it, and what that amounts to for its step.

use rekindle_domain::event::{Event, SessionRestored, StageConfig};
use rekindle_domain::id::{HolderId, RunId, SessionId};
use rekindle_domain::pipeline::outcome::{self, Said, Unclear};
use rekindle_domain::time::Timestamp;
use rekindle_store::log::LogReader;

use crate::drive::live::fetch_payload;
use crate::log_search::{find_last, find_last_event, for_each_line};
use crate::storage::Sessions;

/// The most bytes of the output of a command that are found: its end says what is wrong.
const MOST_OUTPUT: usize = 32 << 10;

/// Returns the last message of an agent in a run; nothing if it said nothing.
pub(super) fn last_message(store: &dyn Sessions, session: SessionId, run: RunId) -> Option<String> {
    let reader = store.reader(session).ok()?;
    let found = find_last_event(&reader, |event| match event {
        Event::MessageAgent(said) => Some(Some(said.content.clone().into_owned())),
        Event::RunStarted(started) if started.run_id == run => Some(None),
        _ => None,
    });
    let content = fetch_payload(store, &found.ok()???).ok()?;
    Some(content.plain_text())
}

/// Returns the end of what a command printed in a run.
pub(super) fn output(store: &dyn Sessions, session: SessionId, run: RunId) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let mut bytes = 0;
    if let Ok(reader) = store.reader(session) {
        let read = find_last_event(&reader, |event| {
            match event {
                Event::MessageAgent(said) => {
                    let text = fetch_payload(store, &said.content).map(|content| content.plain_text());
                    let text = text.unwrap_or_default();
                    bytes += text.len();
                    pieces.push(text);
                }
                Event::AgentExited(end) => pieces.extend(end.stderr_tail.as_deref().map(str::to_owned)),
                Event::RunStarted(started) if started.run_id == run => return Some(()),
                _ => {}
            }
            (bytes >= MOST_OUTPUT).then_some(())
        });
        if let Err(error) = read {
            tracing::warn!("the output of a command cannot be read: {error}");
        }
    }
    pieces.reverse();
    let text = pieces.concat();
    let begin = text.ceil_char_boundary(text.len().saturating_sub(MOST_OUTPUT));
    text[begin..].trim().to_owned()
}

/// Returns what an agent of a stage said came of its work.
pub(super) fn verdict(stage: &StageConfig, message: Option<&str>) -> Result<Said, Unclear> {
    outcome::of_message(stage, message.unwrap_or_default())
}

/// Returns a moment at which the agent of a holder was dead, if its holder saw it end: what it is known by otherwise is later than
/// somebody else may have begun to work on its files.
pub(super) fn proven_death(reader: &LogReader, holder: HolderId) -> Option<Timestamp> {
    let found = find_last(reader, |line| match line.event().ok()? {
        Event::AgentExited(end) if end.holder_id == holder => {
            let is_seen = end.code.is_some() || end.signal.is_some();
            Some(is_seen.then(|| line.at.or_else(|| line.ts.parse().ok())).flatten())
        }
        _ => None,
    });
    found.ok().flatten().flatten()
}

/// Tells whether the agent of a run came back with its session; nothing as long as that is not known. One that was asked without a
/// word of that was there, or had nothing to come back to.
pub(super) fn restored(reader: &LogReader, run: RunId) -> Option<bool> {
    let mut is_asked = false;
    let found = find_last_event(reader, |event| match event {
        Event::SessionRestored(restored) => Some(Some(restored.verdict == SessionRestored::CONTINUED)),
        Event::InputQueued(queued) if queued.run_id == Some(run) => {
            is_asked = true;
            None
        }
        Event::RunStarted(started) if started.run_id == run => Some(None),
        _ => None,
    });
    found.ok().flatten().flatten().or(is_asked.then_some(true))
}

/// Returns how many milliseconds of a run its agent waited for people, as of now.
pub(super) fn waited_ms(reader: &LogReader, since: Timestamp, now: Timestamp) -> u64 {
    let (mut open, mut from, mut waited) = (std::collections::HashSet::new(), None, 0);
    let read = for_each_line(reader, |line| {
        let at = line.at.or_else(|| line.ts.parse().ok()).unwrap_or(since);
        if at < since {
            return;
        }
        match line.event() {
            Ok(Event::RunWaiting(wait)) => {
                open.insert(wait.wait_id);
                from.get_or_insert(at);
            }
            Ok(Event::RunResumed(end)) => {
                open.remove(&end.wait_id);
            }
            Ok(Event::RunStarted(_)) => open.clear(),
            _ => return,
        }
        if open.is_empty() {
            waited += from.take().map_or(0, |from| at.millis_since(from));
        }
    });
    if read.is_err() {
        return 0;
    }
    waited + from.map_or(0, |from| now.millis_since(from))
}
