//! The directory of sessions: every one of the home, as lists show it. What was listed at the start stays as it is until
//! its log grows; then it is looked at again when someone asks.

mod entry;
mod known;
mod survey;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::session::SessionState;
use rekindle_domain::token::{Token, TokenIndex};
use rekindle_store::{LoadError, OpenSessionError, Want};

pub(crate) use self::entry::SessionEntry;
use self::known::Known;
use super::page_key::PageKey;
use crate::error::{Result, chain, damaged_log, unloadable};
use crate::idempotency::Key;
use crate::lock::locked;
use crate::session_span::session_span;
use crate::storage::Catalog;

/// Sessions, as far as it takes to count them.
#[derive(Debug)]
pub(crate) struct Active {
    /// Those that may be anything but idle.
    pub(crate) active: Vec<SessionEntry>,
    /// How many are idle whatever happens around them.
    pub(crate) quiet: usize,
    pub(crate) damaged: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Directory {
    known: Mutex<Known>,
    /// Everything was looked at, or a log is read that was left for later.
    changed: Condvar,
}

impl Directory {
    /// Tells whether everything there was at the start has been looked at.
    pub(crate) fn is_surveyed(&self) -> bool {
        locked(&self.known).surveyed
    }

    /// Says that sessions cannot be listed, and why.
    pub(crate) fn set_unlisted(&self, why: String) {
        locked(&self.known).unlisted = Some(why);
    }

    /// Returns why sessions cannot be listed: whoever asks for any is told so instead of waiting.
    pub(crate) fn unlisted(&self) -> Option<String> {
        locked(&self.known).unlisted.clone()
    }

    /// A session's log has grown.
    pub(crate) fn mark_stale(&self, session: SessionId) {
        *locked(&self.known).stale.entry(session).or_default() += 1;
    }

    /// A session was made by a key.
    pub(crate) fn add_key(&self, stored: &str, session: SessionId) {
        locked(&self.known).add_key(stored, session);
    }

    /// Finds the session that a key made; one that was used for something else is an error.
    pub(crate) fn made_by(&self, store: &dyn Catalog, key: &Key) -> Result<Option<SessionId>> {
        let find = |known: &Known| known.keys.get(&key.key).cloned();
        let mut found = find(&locked(&self.known));
        if found.is_none() {
            let known = self.known();
            found = find(&known);
            // The first record tells which key made a session. Where that could not be read, nobody knows yet.
            let mut unread = known.unread.keys().filter_map(|session| known.entries.get(session));
            if found.is_none() && unread.any(|entry| !entry.state.is_created()) {
                drop(known);
                self.await_all(store);
                found = find(&locked(&self.known));
            }
        }
        let Some((stored, session)) = found else { return Ok(None) };
        Ok(key.is(&stored)?.then_some(session))
    }

    /// A session was made with a lasting name.
    pub(crate) fn add_name(&self, name: &str, session: SessionId) {
        locked(&self.known).names.insert(name.to_owned(), session);
    }

    /// Finds the session that has a lasting name and is not closed.
    pub(crate) fn find_by_key(&self, store: &dyn Catalog, key: &str) -> Option<SessionId> {
        let find = || {
            let found = self.known().names.get(key).copied()?;
            // What is known of it may be old.
            let current = store.open_session(found);
            let is_free = current.is_ok_and(|now| now.state.closed || now.state.deleted);
            (!is_free).then_some(found)
        };
        // The first record tells the name: of those that are still to be read too, unless it could not be read.
        let all_known = || {
            let known = self.known();
            let mut unread = known.unread.keys().filter_map(|session| known.entries.get(session));
            unread.all(|entry| entry.state.is_created())
        };
        find().or_else(|| {
            self.refresh_all(store);
            if !all_known() {
                self.await_all(store);
            }
            find()
        })
    }

    /// A session is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        self.change(|known| known.forget(session));
    }

    /// Returns a session as it is now. Whoever is the first to ask for this one waits until its log was read: a byte that
    /// rotted behind a snapshot is seen by nobody else.
    pub(crate) fn get(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        self.refresh(store, session);
        let entry = self.read(store, session)?;
        if entry.trouble.is_some() {
            return self.reload(store, entry);
        }
        if entry.examined { Some(entry) } else { self.examine(store, entry) }
    }

    /// Returns a session as it was when it was last looked at. Waits for nobody.
    pub(crate) fn peek(&self, session: SessionId) -> Option<SessionEntry> {
        locked(&self.known).entries.get(&session).cloned()
    }

    /// Looks again at a session that could not be loaded: it may have been put right since.
    fn reload(&self, store: &dyn Catalog, entry: SessionEntry) -> Option<SessionEntry> {
        let session = entry.state.id;
        let loaded = store.load(session, Want::Everything);
        // Nobody adds to its log meanwhile: what was read of it is still so.
        if loaded.as_ref().is_err_and(|error| entry.trouble.as_deref() == Some(&unloadable(error))) {
            return Some(entry);
        }
        let Some(fresh) = SessionEntry::new(store, session, loaded) else {
            self.forget(session);
            return None;
        };
        self.change(|known| known.insert(session, fresh.clone()));
        Some(fresh)
    }

    /// Looks at some of the logs that nobody has read since the start, up to so many bytes.
    pub(crate) fn examine_some(&self, store: &dyn Catalog, most: u64) {
        let unread = |entry: &&SessionEntry| !entry.examined;
        let unread: Vec<SessionEntry> = self.known().entries.values().filter(unread).cloned().collect();
        let mut bytes = 0;
        for entry in unread {
            if bytes >= most {
                break;
            }
            bytes += store.log_size(&entry.state);
            self.examine(store, entry);
        }
    }

    /// Reads the log of a session that nobody has read since the start.
    fn examine(&self, store: &dyn Catalog, entry: SessionEntry) -> Option<SessionEntry> {
        let session = entry.state.id;
        let found = store.examine(&entry.state);
        let mut inner = locked(&self.known);
        let mut known = inner.entries.get(&session)?.clone();
        match found {
            Ok(found) => {
                if let Some(damage) = found.as_ref().filter(|_| known.damage.is_none()) {
                    session_span(session).in_scope(|| tracing::error!("{}", damaged_log(damage)));
                }
                known.damage = known.damage.take().or(found.map(Arc::new));
                known.examined = true;
            }
            // It may be gone, or come back: whoever asks next looks again.
            Err(error) => session_span(session).in_scope(|| tracing::warn!("{}", chain(&error))),
        }
        inner.insert(session, known.clone());
        Some(known)
    }

    /// Returns all sessions as they are now, newest first.
    pub(crate) fn all(&self, store: &dyn Catalog) -> Vec<SessionEntry> {
        self.refresh_all(store);
        let mut all: Vec<SessionEntry> = locked(&self.known).entries.values().cloned().collect();
        all.sort_unstable_by_key(|entry| std::cmp::Reverse((entry.state.updated_at, entry.state.id)));
        all
    }

    /// Returns sessions as they were when `refresh_all` was last called: those made before a place, newest first.
    pub(crate) fn made_before(&self, place: Option<PageKey<SessionId>>, most: usize) -> Vec<SessionEntry> {
        let known = self.known();
        let places = match &place {
            Some(place) => known.order.range(..place),
            None => known.order.range::<PageKey<SessionId>, _>(..),
        };
        places.rev().take(most).filter_map(|place| known.entries.get(&place.id).cloned()).collect()
    }

    /// Returns the states that the list cache may have. What cannot be loaded is looked at by every start.
    pub(crate) fn listable(all: &[SessionEntry]) -> impl Iterator<Item = &SessionState> {
        all.iter().filter(|entry| entry.trouble.is_none()).map(|entry| &*entry.state)
    }

    /// Returns those sessions that fit, in no order.
    pub(crate) fn find_all(
        &self,
        store: &dyn Catalog,
        fits: impl Fn(&SessionEntry) -> bool,
    ) -> Vec<SessionEntry> {
        self.refresh_all(store);
        self.known().entries.values().filter(|entry| fits(entry)).cloned().collect()
    }

    /// Returns the sessions that may be anything but idle, or none if they have not been looked at. Waits for nobody: one
    /// that has grown and is not at hand is taken as it was when it was last looked at.
    pub(crate) fn active_if_surveyed(&self, store: &dyn Catalog) -> Option<Active> {
        let stale: Vec<(SessionId, u64)> = {
            let inner = locked(&self.known);
            inner.surveyed.then(|| inner.stale.iter().map(|(id, grown)| (*id, *grown)).collect())?
        };
        for (session, grown) in stale {
            if let Some(current) = store.at_hand(session) {
                self.change(|known| known.renew(session, current, grown));
            }
        }
        let inner = locked(&self.known);
        let active: Vec<SessionEntry> =
            inner.active.iter().filter_map(|id| inner.entries.get(id).cloned()).collect();
        // What is done in those that are still to be read is not known.
        let quiet = inner.entries.len() - active.len() - inner.unread.len();
        Some(Active { quiet, damaged: inner.damaged.len(), active })
    }

    /// Returns the directories below a root in which another session's run goes on, or its agent lives.
    pub(crate) fn busy_below(&self, store: &dyn Catalog, session: SessionId, root: &Path) -> Vec<PathBuf> {
        let busy = |state: &SessionState| {
            let lives = state.agent.as_ref().is_some_and(|agent| !agent.exited);
            !state.deleted && (lives || state.open_run().is_some())
        };
        let below = |directory: &Path| directory != root && directory.starts_with(root);
        let all = self.active_if_surveyed(store).map(|active| active.active).unwrap_or_default();
        let others = all.iter().map(|entry| &entry.state).filter(|state| state.id != session && busy(state));
        others.map(|state| PathBuf::from(&state.working_dir)).filter(|path| below(path)).collect()
    }

    /// Finds the session that has a wait, open or void.
    pub(crate) fn find_by_wait(&self, store: &dyn Catalog, wait: WaitId) -> Option<SessionEntry> {
        let has = |entry: &SessionEntry| entry.state.run.as_ref().is_some_and(|run| run.wait(wait).is_some());
        let of_wait = |token: &Token| token.scope.wait_id == wait;
        self.find_anywhere(store, || {
            let found = self.known().entries.values().find(|entry| has(entry)).cloned();
            found.or_else(|| self.find_by_tokens(store, |index| index.tokens.values().any(of_wait)))
        })
    }

    /// Finds the session that a token is of.
    pub(crate) fn find_by_token(&self, store: &dyn Catalog, token: TokenId) -> Option<SessionEntry> {
        self.find_anywhere(store, || self.find_by_tokens(store, |index| index.tokens.contains_key(&token)))
    }

    /// Looks for a session, also among those that are still to be read: nobody is told of one that it is not there.
    fn find_anywhere(
        &self,
        store: &dyn Catalog,
        find: impl Fn() -> Option<SessionEntry>,
    ) -> Option<SessionEntry> {
        self.refresh_all(store);
        // Asked first: what is read while we look may have been passed by.
        let all_read = self.unread() == 0;
        find().or_else(|| {
            if all_read {
                return None;
            }
            self.await_all(store);
            find()
        })
    }

    fn find_by_tokens(
        &self,
        store: &dyn Catalog,
        fits: impl Fn(&TokenIndex) -> bool,
    ) -> Option<SessionEntry> {
        let inner = self.known();
        let found = inner.entries.values().find(|entry| fits(&entry.tokens)).cloned();
        let lacking = inner.entries.values().filter(|entry| found.is_none() && entry.lacks_tokens());
        let unread: Vec<SessionId> = lacking.map(|entry| entry.state.id).collect();
        drop(inner);
        // The list of a start that was short has no tokens: those of answered waits are read when someone asks.
        found.or_else(|| {
            let mut read = unread.into_iter().filter_map(|session| self.read_tokens(store, session));
            read.find(|entry| fits(&entry.tokens))
        })
    }

    /// Looks again at every session whose log has grown.
    pub(crate) fn refresh_all(&self, store: &dyn Catalog) {
        let known = self.known();
        // Whoever asks for all of them does not wait for a log that is still to be read.
        let is_read = |session: &&SessionId| !known.unread.contains_key(session);
        let stale: Vec<SessionId> = known.stale.keys().filter(is_read).copied().collect();
        drop(known);
        stale.into_iter().for_each(|session| self.refresh(store, session));
    }

    fn read_tokens(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        let tokens = Arc::new(store.load(session, Want::Everything).ok()?.tokens);
        let mut inner = locked(&self.known);
        let entry = inner.entries.get_mut(&session).filter(|entry| entry.lacks_tokens())?;
        entry.tokens = tokens;
        Some(entry.clone())
    }

    /// Looks at a session again if its log has grown. What others ask for meanwhile they look at themselves.
    fn refresh(&self, store: &dyn Catalog, session: SessionId) {
        let Some(grown) = locked(&self.known).stale.get(&session).copied() else { return };
        let current = match store.open_session(session) {
            Ok(current) => current,
            Err(OpenSessionError::Load(LoadError::NotFound(_))) => return self.forget(session),
            Err(_) => return,
        };
        self.change(|known| known.renew(session, current, grown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // I10: a directory that cannot be listed keeps nobody waiting for ever.
    #[test]
    fn whoever_asks_while_the_sessions_cannot_be_listed_is_told_why() {
        let directory = Directory::default();
        assert_eq!(directory.unlisted(), None);
        directory.set_unlisted("no descriptors".into());
        assert_eq!(directory.unlisted().as_deref(), Some("no descriptors"));
    }
}
