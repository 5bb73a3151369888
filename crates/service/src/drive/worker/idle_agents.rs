//! Idle agents: living ones with nothing to do. Each holds memory, so one whose conversation can be brought back is ended when it has
//! been idle for long, or when there are too many. Which those are is known here; a session's worker ends its own.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rekindle_domain::id::SessionId;

use crate::lock::locked;

/// When idle agents are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleAgentPolicy {
    /// After how long; without it none is ended for its idleness alone.
    pub after: Option<Duration>,
    /// How many stay at most; without it as many as there are.
    pub most: Option<usize>,
}

impl IdleAgentPolicy {
    /// None is ever ended.
    pub const KEEP_ALL: IdleAgentPolicy = IdleAgentPolicy { after: None, most: None };
}

/// The idle agents of all sessions that can be brought back, and since when each is idle.
#[derive(Debug, Default)]
pub(super) struct IdleAgents(Mutex<HashMap<SessionId, Instant>>);

impl IdleAgents {
    /// Notes one; returns the one that has been idle longest, if there are more than `most`.
    pub(super) fn note(&self, session: SessionId, since: Instant, most: Option<usize>) -> Option<SessionId> {
        let mut all = locked(&self.0);
        all.insert(session, since);
        let too_many = most.is_some_and(|most| all.len() > most);
        let oldest = all.iter().min_by_key(|(session, since)| (**since, **session));
        oldest.map(|(session, _)| *session).filter(|_| too_many)
    }

    pub(super) fn forget(&self, session: SessionId) {
        locked(&self.0).remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_too_many_the_oldest_goes() {
        let (idle, begin) = (IdleAgents::default(), Instant::now());
        let session = |number: u128| SessionId::mint(1, number);
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        assert_eq!(idle.note(session(1), at(1), Some(2)), None);
        assert_eq!(idle.note(session(2), at(0), Some(2)), None);
        assert_eq!(idle.note(session(3), at(2), Some(2)), Some(session(2)));
        idle.forget(session(2));
        assert_eq!(idle.note(session(1), at(1), Some(2)), None, "told twice it is one");
        assert_eq!(idle.note(session(4), at(3), None), None, "no limit");
    }
}
