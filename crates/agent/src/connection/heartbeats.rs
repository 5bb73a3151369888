//! Heartbeats of an agent: they are live, and have no records. Their number has one, together with the next thing that is recorded, so
//! that it is exact whoever dies: what the log has not counted is read in the journal again.

use rekindle_domain::event::AgentNotice;

use super::fold::FoldResult;
use super::{Connection, Heartbeat};
use crate::json::{Object, parse_raw};
use crate::ndjson::HEARTBEATS;

/// How many heartbeats came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeartbeatCount {
    all: u64,
    logged: u64,
}

impl HeartbeatCount {
    /// Takes in the record that counts them.
    pub(super) fn note(&mut self, notice: &AgentNotice<'_>) {
        if let Some(count) = heartbeats_in(notice) {
            *self = HeartbeatCount { all: count, logged: count };
        }
    }
}

/// Reads the record that counts the heartbeats of an agent since its start.
pub fn heartbeats_in(notice: &AgentNotice<'_>) -> Option<u64> {
    let raw = notice.raw.as_ref().filter(|_| notice.what == HEARTBEATS)?;
    Object::parse(raw.as_json())?.number("count")
}

impl Connection {
    pub(super) fn note_heartbeat(&mut self, status: &str, out: &mut FoldResult) {
        self.facts.heartbeats.all += 1;
        out.taken.heartbeat = Some(Heartbeat { status: status.to_owned(), at: self.time });
    }

    /// Adds the number of heartbeats to records of which it is not the first.
    pub(super) fn count_heartbeats(&mut self, out: &mut FoldResult) {
        let HeartbeatCount { all, logged } = self.facts.heartbeats;
        if all == logged || out.events.is_empty() && out.taken.is_quiet() {
            return;
        }
        self.facts.heartbeats.logged = all;
        let raw = parse_raw(&format!(r#"{{"count":{all}}}"#));
        let text = format!("{all} so far");
        self.notice(HEARTBEATS, Some(text.into()), raw, out);
    }
}
