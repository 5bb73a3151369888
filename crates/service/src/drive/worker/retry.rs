//! Retries for sessions for which no worker could be had: there were no descriptors or threads left. What is to be done is
//! in their logs, so it is enough to look at them again in a moment.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rekindle_domain::id::SessionId;

use crate::lock::locked;

/// When it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Unattended sessions, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct Unattended {
    sessions: Mutex<BTreeMap<SessionId, String>>,
    more: Condvar,
}

impl Unattended {
    pub(super) fn add(&self, session: SessionId, why: String) {
        locked(&self.sessions).insert(session, why);
        self.more.notify_all();
    }

    pub(super) fn remove(&self, session: SessionId) {
        locked(&self.sessions).remove(&session);
    }

    /// Returns why nobody looks after a session that somebody should.
    pub(crate) fn reason(&self, session: SessionId) -> Option<String> {
        locked(&self.sessions).get(&session).cloned()
    }

    /// Waits, for a moment if there are any sessions, else for some or for so long; returns those there are.
    pub(crate) fn wait(&self, most: Duration) -> Vec<SessionId> {
        let sessions = locked(&self.sessions);
        let waited = self.more.wait_timeout_while(sessions, most, |sessions| sessions.is_empty());
        let any = !waited.unwrap_or_else(PoisonError::into_inner).0.is_empty();
        if any {
            std::thread::sleep(AGAIN.min(most));
        }
        locked(&self.sessions).keys().copied().collect()
    }
}
