//! The directory of sessions: every one of the home, as lists show it. What was listed at the start stays as it is until
//! its log grows; then it is looked at again when someone asks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::projector::{SessionStatus, status_after};
use rekindle_domain::session::{End, MessageKey, SessionState};
use rekindle_domain::token::{Token, TokenIndex};
use rekindle_store::commit::Current;
use rekindle_store::log::Damage;
use rekindle_store::{LoadError, Loaded, OpenSessionError, Want};
use rekindle_wire::view::Health;

use super::page_key::PageKey;
use crate::error::{Result, chain, damaged_log, unloadable};
use crate::idempotency::Key;
use crate::lock::locked;
use crate::storage::Catalog;

/// An entry of the directory: what is known of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionEntry {
    pub(crate) state: Arc<SessionState>,
    pub(crate) tokens: Arc<TokenIndex>,
    /// Where its log is damaged.
    pub(crate) damage: Option<Arc<Damage>>,
    /// Why it cannot be loaded: it is shown as far as it can be read, and left alone.
    pub(crate) trouble: Option<Arc<Health>>,
    /// Its log was read from the beginning: what is known of it is not only what caches say.
    examined: bool,
}

impl SessionEntry {
    /// Returns its place in lists: when it was made, which never changes.
    pub(crate) fn place(&self) -> PageKey<SessionId> {
        PageKey { at: self.state.created_at, id: self.state.id }
    }

    /// Tells whether anything can be done in it: its log can be added to, as far as is known.
    pub(crate) fn is_usable(&self) -> bool {
        self.damage.is_none() && self.trouble.is_none()
    }

    /// Returns what a session's files say.
    fn of(loaded: Loaded) -> SessionEntry {
        SessionEntry {
            state: Arc::new(loaded.state),
            tokens: Arc::new(loaded.tokens),
            damage: loaded.damage.map(Arc::new),
            trouble: None,
            examined: loaded.read_from == 0,
        }
    }

    /// Returns what can be shown of a session that cannot be loaded.
    fn troubled(store: &dyn Catalog, session: SessionId, error: &LoadError) -> SessionEntry {
        let trouble = Some(Arc::new(unloadable(error)));
        SessionEntry { trouble, examined: true, ..SessionEntry::of(store.stand_in(session)) }
    }

    fn lacks_tokens(&self) -> bool {
        self.state.token_records > 0 && self.tokens.tokens.is_empty()
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// Everything there was at the start has been looked at.
    surveyed: bool,
    /// Why that could not be done, as long as it cannot.
    unlisted: Option<String>,
    entries: HashMap<SessionId, SessionEntry>,
    /// Those of them that may be anything but idle, and those whose log is damaged.
    active: HashSet<SessionId>,
    damaged: HashSet<SessionId>,
    /// The places of all entries, so that a page of them is found without looking at the others.
    order: BTreeSet<PageKey<SessionId>>,
    /// Sessions whose log has grown since they were looked at, and how often.
    stale: HashMap<SessionId, u64>,
    /// Which session a key made, and the key with what it was used for, by the caller's part of it.
    keys: HashMap<String, (String, SessionId)>,
}

/// Sessions, as far as it takes to count them.
#[derive(Debug)]
pub(crate) struct Active {
    /// Those that may be anything but idle.
    pub(crate) active: Vec<SessionEntry>,
    /// How many are idle whatever happens around them.
    pub(crate) quiet: usize,
    pub(crate) damaged: usize,
}

impl Inner {
    fn insert_entry(&mut self, session: SessionId, entry: SessionEntry) {
        let set = |set: &mut HashSet<SessionId>, is| {
            if is {
                set.insert(session)
            } else {
                set.remove(&session)
            };
        };
        set(&mut self.active, !is_quiet(&entry.state));
        set(&mut self.damaged, entry.damage.is_some());
        let place = entry.place();
        if let Some(before) = self.entries.insert(session, entry).filter(|before| before.place() != place) {
            self.order.remove(&before.place());
        }
        self.order.insert(place);
    }

    fn forget(&mut self, session: SessionId) {
        if let Some(entry) = self.entries.remove(&session) {
            self.order.remove(&entry.place());
        }
        self.active.remove(&session);
        self.damaged.remove(&session);
        self.stale.remove(&session);
        self.keys.retain(|_, (_, made)| *made != session);
    }

    /// Takes in a session as it was when it had grown so often.
    fn renew(&mut self, session: SessionId, current: Current, grown: u64) {
        let (state, tokens, damage) = (current.state, current.tokens, current.damage);
        let known = self.entries.get(&session);
        if known.is_none_or(|known| known.state.last_seq <= state.last_seq) {
            // Whoever opened it has read it.
            self.insert_entry(session, SessionEntry { state, tokens, damage, trouble: None, examined: true });
        }
        if self.stale.get(&session) == Some(&grown) {
            self.stale.remove(&session);
        }
    }
}

/// Tells whether a session is idle by its log alone, whatever the time and whoever lives.
fn is_quiet(state: &SessionState) -> bool {
    let ended = |end: Option<End>| end.is_some_and(|end| status_after(end) == SessionStatus::Idle);
    !state.is_unfinished() && state.run.as_ref().is_none_or(|run| ended(run.end))
}

#[derive(Debug, Default)]
pub(crate) struct Directory {
    inner: Mutex<Inner>,
    surveyed: Condvar,
}

impl Directory {
    /// Looks at every session of a home. Whoever asks for any of them meanwhile waits.
    pub(crate) fn survey(&self, store: &dyn Catalog) -> std::io::Result<()> {
        let mut inner = Inner { surveyed: true, ..Inner::default() };
        store.survey(&mut |id, loaded| match loaded {
            Ok(loaded) => {
                if let Some(key) = &loaded.state.created_by_key {
                    inner.keys.insert(MessageKey::name(key).to_owned(), (key.clone(), id));
                }
                inner.insert_entry(id, SessionEntry::of(loaded));
            }
            // Removed while it was looked at.
            Err(LoadError::NotFound(_)) => {}
            // It hides no other, and is not hidden itself (I10, I12); doctor says more.
            Err(error) => {
                tracing::error!(session = %id, "cannot be loaded: {}", chain(&error));
                inner.insert_entry(id, SessionEntry::troubled(store, id, &error));
            }
        })?;
        let mut known = locked(&self.inner);
        // What has grown meanwhile is looked at again.
        inner.stale = std::mem::take(&mut known.stale);
        inner.keys.extend(std::mem::take(&mut known.keys));
        *known = inner;
        self.surveyed.notify_all();
        Ok(())
    }

    /// Tells whether everything there was at the start has been looked at.
    pub(crate) fn is_surveyed(&self) -> bool {
        locked(&self.inner).surveyed
    }

    /// Says that sessions cannot be listed, and why.
    pub(crate) fn set_unlisted(&self, why: String) {
        locked(&self.inner).unlisted = Some(why);
    }

    /// Returns why sessions cannot be listed: whoever asks for any is told so instead of waiting.
    pub(crate) fn unlisted(&self) -> Option<String> {
        locked(&self.inner).unlisted.clone()
    }

    fn known(&self) -> MutexGuard<'_, Inner> {
        let inner = locked(&self.inner);
        self.surveyed.wait_while(inner, |inner| !inner.surveyed).unwrap_or_else(PoisonError::into_inner)
    }

    /// A session's log has grown.
    pub(crate) fn mark_stale(&self, session: SessionId) {
        *locked(&self.inner).stale.entry(session).or_default() += 1;
    }

    /// A session was made by a key.
    pub(crate) fn add_key(&self, stored: &str, session: SessionId) {
        locked(&self.inner).keys.insert(MessageKey::name(stored).to_owned(), (stored.to_owned(), session));
    }

    /// Finds the session that a key made; one that was used for something else is an error.
    pub(crate) fn made_by(&self, key: &Key) -> Result<Option<SessionId>> {
        let known = self.known().keys.get(&key.key).cloned();
        let Some((stored, session)) = known else { return Ok(None) };
        Ok(key.is(&stored)?.then_some(session))
    }

    /// A session is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        locked(&self.inner).forget(session);
    }

    /// Returns a session as it is now. Whoever is the first to ask for this one waits until its log was read: a byte that
    /// rotted behind a snapshot is seen by nobody else.
    pub(crate) fn get(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        self.refresh(store, session);
        let entry = self.known().entries.get(&session).cloned()?;
        if entry.trouble.is_some() {
            return self.reload(store, entry);
        }
        if entry.examined { Some(entry) } else { self.examine(store, entry) }
    }

    /// Looks again at a session that could not be loaded: it may have been put right since.
    fn reload(&self, store: &dyn Catalog, entry: SessionEntry) -> Option<SessionEntry> {
        let session = entry.state.id;
        let fresh = match store.load(session, Want::Everything) {
            Ok(loaded) => SessionEntry::of(loaded),
            Err(LoadError::NotFound(_)) => {
                self.forget(session);
                return None;
            }
            // Nobody adds to its log meanwhile: what was read of it is still so.
            Err(error) if entry.trouble.as_deref() == Some(&unloadable(&error)) => return Some(entry),
            Err(error) => SessionEntry::troubled(store, session, &error),
        };
        locked(&self.inner).insert_entry(session, fresh.clone());
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
        let mut inner = locked(&self.inner);
        let mut known = inner.entries.get(&session)?.clone();
        match found {
            Ok(found) => {
                if let Some(damage) = found.as_ref().filter(|_| known.damage.is_none()) {
                    tracing::error!(%session, "{}", damaged_log(damage));
                }
                known.damage = known.damage.take().or(found.map(Arc::new));
                known.examined = true;
            }
            // It may be gone, or come back: whoever asks next looks again.
            Err(error) => tracing::warn!(%session, "{}", chain(&error)),
        }
        inner.insert_entry(session, known.clone());
        Some(known)
    }

    /// Returns all sessions as they are now, newest first.
    pub(crate) fn all(&self, store: &dyn Catalog) -> Vec<SessionEntry> {
        self.refresh_all(store);
        let mut all: Vec<SessionEntry> = locked(&self.inner).entries.values().cloned().collect();
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
            let inner = locked(&self.inner);
            inner.surveyed.then(|| inner.stale.iter().map(|(id, grown)| (*id, *grown)).collect())?
        };
        for (session, grown) in stale {
            if let Some(current) = store.at_hand(session) {
                locked(&self.inner).renew(session, current, grown);
            }
        }
        let inner = locked(&self.inner);
        let active: Vec<SessionEntry> =
            inner.active.iter().filter_map(|id| inner.entries.get(id).cloned()).collect();
        Some(Active { quiet: inner.entries.len() - active.len(), damaged: inner.damaged.len(), active })
    }

    /// Finds the session that has a wait, open or void.
    pub(crate) fn find_by_wait(&self, store: &dyn Catalog, wait: WaitId) -> Option<SessionEntry> {
        let has = |entry: &SessionEntry| entry.state.run.as_ref().is_some_and(|run| run.wait(wait).is_some());
        self.refresh_all(store);
        let found = self.known().entries.values().find(|entry| has(entry)).cloned();
        let of_wait = |token: &Token| token.scope.wait_id == wait;
        found.or_else(|| self.find_by_tokens(store, |index| index.tokens.values().any(of_wait)))
    }

    /// Finds the session that a token is of.
    pub(crate) fn find_by_token(&self, store: &dyn Catalog, token: TokenId) -> Option<SessionEntry> {
        self.refresh_all(store);
        self.find_by_tokens(store, |index| index.tokens.contains_key(&token))
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
        let stale: Vec<SessionId> = self.known().stale.keys().copied().collect();
        stale.into_iter().for_each(|session| self.refresh(store, session));
    }

    fn read_tokens(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        let tokens = Arc::new(store.load(session, Want::Everything).ok()?.tokens);
        let mut inner = locked(&self.inner);
        let entry = inner.entries.get_mut(&session).filter(|entry| entry.lacks_tokens())?;
        entry.tokens = tokens;
        Some(entry.clone())
    }

    /// Looks at a session again if its log has grown. What others ask for meanwhile they look at themselves.
    fn refresh(&self, store: &dyn Catalog, session: SessionId) {
        let Some(grown) = self.known().stale.get(&session).copied() else { return };
        let current = match store.open_session(session) {
            Ok(current) => current,
            Err(OpenSessionError::Load(LoadError::NotFound(_))) => return self.forget(session),
            Err(_) => return,
        };
        locked(&self.inner).renew(session, current, grown);
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
