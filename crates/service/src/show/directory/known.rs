//! What a directory knows: the entries, and what finds them quickly.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::mpsc::Sender;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::MessageKey;
use rekindle_store::commit::Current;

use super::entry::SessionEntry;
use crate::show::page_key::PageKey;

/// What is known of all sessions.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Everything there was at the start has been looked at, but for what is in `unread`.
    pub(super) surveyed: bool,
    /// Why that could not be done, as long as it cannot.
    pub(super) unlisted: Option<String>,
    pub(super) entries: HashMap<SessionId, SessionEntry>,
    /// Those of them that may be anything but idle, and those whose log is damaged.
    pub(super) active: HashSet<SessionId>,
    pub(super) damaged: HashSet<SessionId>,
    /// Those whose log is so long that it is read behind all others.
    pub(super) unread: HashMap<SessionId, Unread>,
    /// The places of all entries, so that a page of them is found without looking at the others.
    pub(super) order: BTreeSet<PageKey<SessionId>>,
    /// Sessions whose log has grown since they were looked at, and how often.
    pub(super) stale: HashMap<SessionId, u64>,
    /// Which session a key made, and the key with what it was used for, by the caller's part of it.
    pub(super) keys: HashMap<String, (String, SessionId)>,
    /// Sessions that are not closed, by the lasting names that callers gave them.
    pub(super) names: HashMap<String, SessionId>,
    /// Who is told of those that need a worker when they are read, until all are.
    pub(super) unfinished: Option<Sender<SessionId>>,
    /// Those that went before everything was read: whoever has just read one does not bring it back.
    gone: HashSet<SessionId>,
}

/// A log that is still to be read.
#[derive(Debug)]
pub(super) struct Unread {
    /// Bytes of it.
    pub(super) bytes: u64,
    /// Somebody reads it.
    pub(super) being_read: bool,
}

impl Known {
    /// Takes in what was read of a session, unless more is known of it by now, and tells of one that needs a worker.
    pub(super) fn add(&mut self, session: SessionId, entry: SessionEntry) {
        if self.gone.contains(&session) {
            return;
        }
        if let Some(unfinished) = self.unfinished.as_ref().filter(|_| entry.needs_worker()) {
            let _ = unfinished.send(session);
        }
        if let Some(key) = &entry.state.created_by_key {
            self.add_key(key, session);
        }
        let is_newer =
            |known: &SessionEntry| !known.is_unread() && known.state.last_seq >= entry.state.last_seq;
        if self.entries.get(&session).is_some_and(is_newer) {
            return;
        }
        self.insert(session, entry);
    }

    /// Takes in what is known of a session, whatever was known before.
    pub(super) fn insert(&mut self, session: SessionId, entry: SessionEntry) {
        let set = |set: &mut HashSet<SessionId>, is| {
            if is {
                set.insert(session)
            } else {
                set.remove(&session)
            };
        };
        // How one began that is still to be read says nothing of what goes on in it.
        set(&mut self.active, !entry.is_unread() && !entry.is_quiet());
        set(&mut self.damaged, entry.damage.is_some());
        if !entry.is_unread() && !self.unread.is_empty() {
            self.unread.remove(&session);
        }
        if let Some(name) = &entry.state.key {
            if entry.state.closed || entry.state.deleted {
                self.names.retain(|_, named| *named != session);
            } else {
                self.names.insert(name.clone(), session);
            }
        }
        let place = entry.place();
        if let Some(before) = self.entries.insert(session, entry).filter(|before| before.place() != place) {
            self.order.remove(&before.place());
        }
        self.order.insert(place);
    }

    pub(super) fn add_key(&mut self, stored: &str, session: SessionId) {
        self.keys.insert(MessageKey::name(stored).to_owned(), (stored.to_owned(), session));
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        if let Some(entry) = self.entries.remove(&session) {
            self.order.remove(&entry.place());
        }
        self.active.remove(&session);
        self.damaged.remove(&session);
        self.stale.remove(&session);
        self.keys.retain(|_, (_, made)| *made != session);
        self.names.retain(|_, named| *named != session);
        if !self.is_all_read() {
            self.gone.insert(session);
        }
        self.unread.remove(&session);
    }

    /// Takes in a session as it was when it had grown so often.
    pub(super) fn renew(&mut self, session: SessionId, current: Current, grown: u64) {
        let known = self.entries.get(&session);
        if known.is_none_or(|known| known.state.last_seq <= current.state.last_seq) {
            self.insert(session, SessionEntry::current(current));
        }
        if self.stale.get(&session) == Some(&grown) {
            self.stale.remove(&session);
        }
    }

    /// If everything there was at the start has been read, whoever waits for those that need a worker knows of all.
    pub(super) fn settle(&mut self) {
        if self.is_all_read() {
            self.unfinished = None;
        }
    }

    /// Tells whether everything there was at the start has been read.
    pub(super) fn is_all_read(&self) -> bool {
        self.surveyed && self.unread.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_domain::session::SessionState;
    use rekindle_domain::token::TokenIndex;
    use rekindle_store::LoadError;

    use super::*;
    use crate::error::unloadable;

    #[test]
    fn a_session_that_is_still_to_be_read_counts_neither_as_active_nor_as_quiet() {
        let session = SessionId::mint(1, 1);
        let mut state = SessionState::empty(session);
        // A log of an earlier layout may begin in the middle of anything.
        state.deleted = true;
        let trouble = unloadable(&LoadError::Unread { session, unread: 1 });
        let (state, tokens) = (Arc::new(state), Arc::new(TokenIndex::empty(session)));
        let read = SessionEntry { state, tokens, damage: None, trouble: None, examined: true };
        let unread = SessionEntry { trouble: Some(Arc::new(trouble)), ..read.clone() };
        let mut known = Known { surveyed: true, ..Known::default() };
        known.unread.insert(session, Unread { bytes: 1, being_read: false });
        known.add(session, unread);
        assert!(known.active.is_empty() && !known.is_all_read() && known.entries.len() == 1);
        known.add(session, read);
        assert!(known.active.contains(&session) && known.is_all_read());
    }
}
