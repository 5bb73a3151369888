//! What all sessions have used on one day, by the calendar of this machine: added up from their states, less what they had used when the
//! day began. Nothing of it is written: after a start it is added up again.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use rekindle_domain::budget::Used;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::{Replay, SessionState};
use rekindle_domain::time::{Now, Timestamp};
use rekindle_store::Store;
use rekindle_store::log::Cursor;

/// One day, and what was used on it.
#[derive(Debug)]
pub(super) struct DailyUsage {
    begin: Timestamp,
    /// When the next day begins.
    pub(super) end: Timestamp,
    sessions: HashMap<SessionId, Span>,
}

/// What a session has used: before the day, and until it was last looked at.
#[derive(Debug)]
struct Span {
    before: Used,
    now: Used,
    is_open: bool,
}

impl DailyUsage {
    /// Begins to add up the day of a time, in a time zone.
    pub(super) fn new(now: Timestamp, zone: &TimeZone) -> DailyUsage {
        let (begin, end) = day_of(now, zone);
        DailyUsage { begin, end, sessions: HashMap::new() }
    }

    /// Tells whether a time is on this day.
    pub(super) fn has(&self, time: Timestamp) -> bool {
        (self.begin..self.end).contains(&time)
    }

    /// Tells whether a session may have used something on this day.
    pub(super) fn concerns(&self, state: &SessionState) -> bool {
        state.updated_at >= self.begin || state.open_run().is_some()
    }

    /// Takes in how a session stands.
    pub(super) fn add(&mut self, store: &Store, state: &SessionState, now: &Now) {
        let (used, is_open) = (state.used(now), state.open_run().is_some());
        let begin = self.begin;
        let span = self.sessions.entry(state.id).or_insert_with(|| {
            let before = if state.created_at >= begin {
                Some(Used::default())
            } else {
                used_before(store, state.id, begin)
            };
            // Of what cannot be read nothing is known to be of this day.
            Span { before: before.unwrap_or(used), now: used, is_open }
        });
        (span.now, span.is_open) = (used, is_open);
    }

    /// Returns the sessions in which something goes on, as far as was seen.
    pub(super) fn open(&self) -> Vec<SessionId> {
        self.sessions.iter().filter(|(_, span)| span.is_open).map(|(session, _)| *session).collect()
    }

    /// Returns what was used.
    pub(super) fn used(&self) -> Used {
        self.sessions.values().fold(Used::default(), |sum, span| sum.plus(&span.now.since(&span.before)))
    }
}

/// Returns when the day of a time begins and ends, by the calendar of a time zone.
fn day_of(time: Timestamp, zone: &TimeZone) -> (Timestamp, Timestamp) {
    let day = || {
        let time = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?.to_zoned(zone.clone());
        let begin = time.start_of_day().ok()?;
        let end = begin.tomorrow().ok()?.start_of_day().ok()?;
        let at = |time: jiff::Zoned| Timestamp::from_millis(time.timestamp().as_millisecond());
        Some((at(begin), at(end)))
    };
    // At the ends of time there is no such day.
    day().unwrap_or((time, time.plus_millis(24 * 60 * 60 * 1000)))
}

/// Reads what a session had used at some time; none if its log cannot be read.
fn used_before(store: &Store, session: SessionId, time: Timestamp) -> Option<Used> {
    let reader = store.reader(session).ok()?;
    let mut lines = reader.forward(Cursor::START);
    let mut replay = Replay::from(SessionState::empty(session), None);
    while let Some(raw) = lines.next().ok()? {
        let Ok(line) = Line::parse(raw.bytes) else { break };
        if !raw.whole || line.happened_at() >= time || replay.push_unverified(&line, line.seq.max(1)).is_err()
        {
            break;
        }
    }
    Some(replay.state.used(&Now { wall: time, steady: time }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one_of_the_calendar_also_where_it_has_not_24_hours() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        for (time, begin, end) in [
            ("2026-11-18T02:00:00Z", "2026-11-17T23:00:00Z", "2026-11-18T23:00:00Z"),
            ("2026-11-17T23:00:00Z", "2026-11-17T23:00:00Z", "2026-11-18T23:00:00Z"),
            ("2026-11-17T22:59:59.999Z", "2026-11-16T23:00:00Z", "2026-11-17T23:00:00Z"),
            ("2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            ("2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ] {
            assert_eq!(day_of(at(time), &zone), (at(begin), at(end)), "{time}");
        }
    }
}
