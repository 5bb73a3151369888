//! Sessions in which something has happened that no snapshot has, and when one of them is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{Activity, SnapshotReason};
use rekindle_domain::session::SessionState;

/// The sessions that have something no snapshot has.
#[derive(Debug, Default)]
pub(super) struct Unsaved(HashMap<SessionId, Entry>);

#[derive(Debug)]
struct Entry {
    reason: SnapshotReason,
    /// Something happened since somebody last looked how the session stands and what it wants.
    unseen: bool,
    /// When a snapshot is due; not known until somebody has looked.
    due: Option<Instant>,
    /// The session as it was between two runs.
    at_rest: Option<Arc<SessionState>>,
}

/// A snapshot that is to be taken.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) session: SessionId,
    pub(super) reason: SnapshotReason,
    /// The session as it was at the end of its run, should it be in the next one by now.
    pub(super) at_rest: Option<Arc<SessionState>>,
}

impl Unsaved {
    /// Notes that records were added to a session's log; tells whether somebody has to look.
    pub(super) fn note(&mut self, session: SessionId, activity: Activity) -> bool {
        if !activity.is_worth_keeping {
            return false;
        }
        let reason = match activity {
            Activity { closes: true, .. } => SnapshotReason::Exit,
            Activity { ends_run: true, .. } => SnapshotReason::RunEnd,
            Activity { .. } => SnapshotReason::Interval,
        };
        let Some(entry) = self.0.get_mut(&session) else {
            self.0.insert(session, Entry { reason, unseen: true, due: None, at_rest: None });
            return true;
        };
        if reason == SnapshotReason::Interval {
            return false;
        }
        // Soon: what was to come after a while need not wait any longer.
        if entry.reason == SnapshotReason::Interval {
            entry.due = None;
        }
        (entry.reason, entry.unseen) = (reason, true);
        true
    }

    /// Returns those that somebody has to look at.
    pub(super) fn unseen(&self) -> Vec<(SessionId, SnapshotReason)> {
        let unseen = self.0.iter().filter(|(_, entry)| entry.unseen);
        unseen.map(|(session, entry)| (*session, entry.reason)).collect()
    }

    /// Says when the snapshot of a session that was looked at is due, unless that is known, and what it was between two runs.
    pub(super) fn schedule(&mut self, session: SessionId, due: Instant, at_rest: Option<Arc<SessionState>>) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.unseen = false;
            entry.due.get_or_insert(due);
            entry.at_rest = at_rest.or(entry.at_rest.take());
        }
    }

    /// Puts back one that could not be taken, to be tried again; what has happened since comes first.
    pub(super) fn put_back(&mut self, session: SessionId, reason: SnapshotReason, due: Instant) {
        let again = Entry { reason, unseen: false, due: Some(due), at_rest: None };
        self.0.entry(session).or_insert(again);
    }

    /// Lets go of a session: a snapshot is taken of it, or it is gone.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    /// Takes out some that are due.
    pub(super) fn take_due(&mut self, now: Instant, most: usize) -> Vec<Due> {
        let due = |entry: &Entry| !entry.unseen && entry.due.is_some_and(|due| due <= now);
        let due = self.0.extract_if(|_, entry| due(entry)).take(most);
        due.map(|(session, entry)| Due { session, reason: entry.reason, at_rest: entry.at_rest }).collect()
    }

    /// Takes out all of them.
    pub(super) fn take_all(&mut self) -> Vec<Due> {
        let all = self.0.drain();
        all.map(|(session, entry)| Due { session, reason: entry.reason, at_rest: entry.at_rest }).collect()
    }

    /// Returns when there is something to do; none if nothing is known of, at once if something has to be looked at.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.0.values().filter_map(|entry| if entry.unseen { Some(now) } else { entry.due }).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WORDS: Activity =
        Activity { is_worth_keeping: true, ends_run: false, closes: false, is_news: false };
    const END: Activity = Activity { ends_run: true, ..WORDS };

    #[test]
    fn words_are_kept_after_a_while_and_the_end_of_a_run_soon() {
        let (session, now) = (SessionId::mint(1, 1), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut unsaved = Unsaved::default();
        assert!(!unsaved.note(session, Activity::default()) && unsaved.next(now).is_none());
        assert!(unsaved.note(session, WORDS) && unsaved.next(now) == Some(now), "somebody has to look");
        assert!(unsaved.take_due(after(1000), 9).is_empty(), "nobody knows when it is due");
        unsaved.schedule(session, after(300), None);
        assert!(!unsaved.note(session, WORDS) && unsaved.next(now) == Some(after(300)));
        assert!(unsaved.note(session, END), "that is looked at again");
        unsaved.schedule(session, after(1), None);
        // The end of another run does not put it off.
        assert!(unsaved.note(session, END));
        unsaved.schedule(session, after(2), None);
        assert!(unsaved.take_due(now, 9).is_empty());
        assert!(unsaved.take_due(after(1), 0).is_empty());
        let due = unsaved.take_due(after(1), 9);
        assert_eq!((due.len(), due[0].session, due[0].reason), (1, session, SnapshotReason::RunEnd));
        assert!(unsaved.next(now).is_none() && unsaved.take_all().is_empty());
    }

    #[test]
    fn one_that_failed_is_tried_again_unless_more_has_happened() {
        let (session, now) = (SessionId::mint(1, 1), Instant::now());
        let mut unsaved = Unsaved::default();
        unsaved.put_back(session, SnapshotReason::Interval, now + Duration::from_secs(5));
        assert_eq!(unsaved.next(now), Some(now + Duration::from_secs(5)));
        assert!(unsaved.note(session, END));
        unsaved.put_back(session, SnapshotReason::Interval, now + Duration::from_secs(9));
        assert_eq!(unsaved.unseen(), [(session, SnapshotReason::RunEnd)]);
        unsaved.forget(session);
        assert!(unsaved.next(now).is_none());
    }
}
