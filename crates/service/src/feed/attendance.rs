//! Attendance: which sessions somebody looks at. A follower says so of itself, a terminal that shows a session to a person for example:
//! a program that only reads along is nobody who would see a question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rekindle_domain::id::SessionId;
use rekindle_domain::time::{Clock, Timestamp};

use crate::lock::locked;

/// For how long it is remembered when somebody stopped looking: what was recorded before that was seen.
const REMEMBERED_MS: u64 = 60_000;

/// Who looks at which session.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    sessions: Mutex<HashMap<SessionId, Looked>>,
}

#[derive(Debug, Default)]
struct Looked {
    /// How many look now.
    now: usize,
    /// When the last of those left that do not any more.
    left: Option<Timestamp>,
}

impl Attendance {
    /// Notes that somebody looks at a session, until what is returned is dropped.
    pub(crate) fn attend(self: &Arc<Attendance>, session: SessionId, clock: Arc<dyn Clock>) -> Attending {
        locked(&self.sessions).entry(session).or_default().now += 1;
        Attending { attendance: self.clone(), session, clock }
    }

    /// Tells whether somebody looks at a session, or did when something was recorded at a time.
    pub(crate) fn was_attended(&self, session: SessionId, at: Timestamp) -> bool {
        let sessions = locked(&self.sessions);
        let looked = sessions.get(&session);
        looked.is_some_and(|looked| looked.now > 0 || looked.left.is_some_and(|left| left >= at))
    }

    fn leave(&self, session: SessionId, now: Timestamp) {
        let mut sessions = locked(&self.sessions);
        if let Some(looked) = sessions.get_mut(&session) {
            looked.now = looked.now.saturating_sub(1);
            looked.left = Some(now);
        }
        let is_recent = |left: Timestamp| now.millis_since(left) < REMEMBERED_MS;
        sessions.retain(|_, looked| looked.now > 0 || looked.left.is_some_and(is_recent));
    }
}

/// Somebody who looks at a session.
pub(crate) struct Attending {
    attendance: Arc<Attendance>,
    session: SessionId,
    clock: Arc<dyn Clock>,
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.attendance.leave(self.session, self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::clock::SimClock;

    use super::*;

    #[test]
    fn whoever_left_has_seen_what_was_recorded_before() {
        let clock = Arc::new(SimClock::default());
        let attendance = Arc::<Attendance>::default();
        let session = SessionId::mint(1, 1);
        let begin = clock.now();
        assert!(!attendance.was_attended(session, begin));
        let (one, other) =
            (attendance.attend(session, clock.clone()), attendance.attend(session, clock.clone()));
        drop(one);
        assert!(attendance.was_attended(session, begin.plus_millis(1_000_000)), "the other still looks");
        clock.advance(5_000);
        drop(other);
        let left = clock.now();
        assert!(attendance.was_attended(session, left));
        assert!(!attendance.was_attended(session, left.plus_millis(1)), "what comes later nobody has seen");
        clock.advance(REMEMBERED_MS as i64);
        drop(attendance.attend(SessionId::mint(1, 2), clock.clone()));
        assert!(!attendance.was_attended(session, begin), "it takes no room for ever");
    }
}
