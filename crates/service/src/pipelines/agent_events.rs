//! What `ndjson` agents said of a step, as the logs of its sessions have it: the event that ended their command, artifacts, and how much
//! of everything.

use std::collections::BTreeMap;
use std::io;

use rekindle_agent::connection::heartbeats_in;
use rekindle_agent::ndjson::{ARTIFACT, EVENT, LATE_EVENT, LOG, TERMINAL_EVENT};
use rekindle_domain::event::{Event, Raw, StepCounts};
use rekindle_domain::id::{HolderId, RunId, SessionId};
use rekindle_store::log::LogReader;
use serde_json::Value;

use crate::drive::live::fetch_payload;
use crate::log_search::{find_last_event, for_each_line};
use crate::storage::Sessions;

/// The event that ended a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TerminalEvent {
    /// Its type: `builder.completed`.
    pub(super) event_type: String,
    /// What the agent says with it.
    pub(super) payload: Value,
}

/// Returns the event that ended the command of a run; none if nothing did.
pub(super) fn terminal_event(store: &dyn Sessions, session: SessionId, run: RunId) -> Option<TerminalEvent> {
    let reader = store.reader(session).ok()?;
    let found = find_last_event(&reader, |event| match event {
        Event::AgentNotice(notice) if notice.what == TERMINAL_EVENT && notice.run_id == Some(run) => {
            Some(notice.raw.clone().map(Raw::into_owned))
        }
        Event::RunStarted(started) if started.run_id == run => Some(None),
        _ => None,
    });
    let raw = fetch_payload(store, &found.ok()???).ok()?;
    let mut event: Value = serde_json::from_str(raw.as_json()).ok()?;
    let event_type = event["event_type"].as_str()?.to_owned();
    Some(TerminalEvent { event_type, payload: event["payload"].take() })
}

/// Returns what an agent told of artifacts in a run, in its order.
pub(super) fn artifacts_told(reader: &LogReader, run: RunId) -> io::Result<Vec<Value>> {
    let mut told = Vec::new();
    for_each_line(reader, |line| {
        if let Ok(Event::AgentNotice(notice)) = line.event()
            && notice.what == ARTIFACT
            && notice.run_id == Some(run)
        {
            // One that is too large for the log is none: its path would be.
            let raw = notice.raw.as_ref().and_then(|raw| serde_json::from_str(raw.as_json()).ok());
            told.push(raw.unwrap_or_default());
        }
    })?;
    Ok(told)
}

/// Counts what the agents of a session said.
pub(super) fn count(reader: &LogReader) -> io::Result<StepCounts> {
    let mut counts = StepCounts::default();
    let mut heartbeats: BTreeMap<HolderId, u64> = BTreeMap::new();
    for_each_line(reader, |line| {
        let Ok(Event::AgentNotice(notice)) = line.event() else { return };
        match notice.what.as_ref() {
            EVENT | TERMINAL_EVENT | LATE_EVENT => counts.events += 1,
            LOG => counts.logs += 1,
            // Each agent counts from its own beginning.
            _ => {
                if let (Some(source), Some(count)) = (line.source, heartbeats_in(&notice)) {
                    heartbeats.insert(source.0, count);
                }
            }
        }
    })?;
    counts.heartbeats = heartbeats.values().sum();
    Ok(counts)
}
