//! The sessions the committer has open, in two halves, so that two threads can encode a large group: a
//! session is always in the same half, and so its appends keep their order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rekindle_domain::id::SessionId;

use super::live::Live;

pub(super) type Half = HashMap<SessionId, Live>;

/// All open sessions.
#[derive(Default)]
pub(super) struct Lives {
    halves: [Half; 2],
}

/// Tells which half a session is in: the last digit of an id is as good as a coin.
pub(super) fn half_of(session: SessionId) -> usize {
    session.as_str().bytes().last().map_or(0, |digit| usize::from(digit & 1))
}

/// Where sessions are found by their id.
pub(super) trait Find {
    fn find(&mut self, session: SessionId) -> Option<&mut Live>;
}

impl Find for Half {
    fn find(&mut self, session: SessionId) -> Option<&mut Live> {
        self.get_mut(&session)
    }
}

impl Find for Lives {
    fn find(&mut self, session: SessionId) -> Option<&mut Live> {
        self.get_mut(session)
    }
}

impl Lives {
    pub(super) fn get(&self, session: SessionId) -> Option<&Live> {
        self.halves[half_of(session)].get(&session)
    }

    pub(super) fn get_mut(&mut self, session: SessionId) -> Option<&mut Live> {
        self.halves[half_of(session)].get_mut(&session)
    }

    pub(super) fn entry(&mut self, session: SessionId) -> Entry<'_, SessionId, Live> {
        self.halves[half_of(session)].entry(session)
    }

    pub(super) fn remove(&mut self, session: SessionId) {
        self.halves[half_of(session)].remove(&session);
    }

    /// Returns one half.
    pub(super) fn half(&mut self, index: usize) -> &mut Half {
        &mut self.halves[index]
    }
}
