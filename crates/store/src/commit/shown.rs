//! Sessions as of everything that was answered, for all who look: nobody waits for the committer to see one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::SessionId;

use super::Current;

/// A session that was written to this often since someone last looked is not shown any more: each time it costs a copy.
const FORGOTTEN_AFTER: u32 = 256;

struct Case {
    current: Current,
    /// How often it was replaced since someone looked.
    unseen: u32,
}

/// What is shown. Only sessions that someone asked for are.
#[derive(Default)]
pub(crate) struct Shown {
    cases: Mutex<HashMap<SessionId, Case>>,
}

impl Shown {
    /// Returns a session if it is shown.
    pub(super) fn get(&self, session: SessionId) -> Option<Current> {
        let mut cases = self.lock();
        let case = cases.get_mut(&session)?;
        case.unseen = 0;
        Some(case.current.clone())
    }

    /// Shows a session from now on.
    pub(super) fn show(&self, current: Current) {
        self.lock().insert(current.state.id, Case { current, unseen: 0 });
    }

    /// Shows those that are shown as they are by now.
    pub(super) fn renew(
        &self,
        sessions: impl Iterator<Item = SessionId>,
        now: impl Fn(SessionId) -> Option<Current>,
    ) {
        let mut cases = self.lock();
        if cases.is_empty() {
            return;
        }
        for session in sessions {
            let Some(case) = cases.get_mut(&session) else { continue };
            match now(session).filter(|_| case.unseen < FORGOTTEN_AFTER) {
                Some(current) => *case = Case { current, unseen: case.unseen + 1 },
                None => drop(cases.remove(&session)),
            }
        }
    }

    /// Shows a session no longer.
    pub(super) fn hide(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Case>> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
