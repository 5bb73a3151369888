//! The survey of a start: sessions become known as they are read. Those of whose log a large part is in no cache are known by how they
//! began until all others are known, and are read then: nobody waits for one who did not ask for it.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use rekindle_domain::id::SessionId;
use rekindle_store::{LoadError, Want};

use super::Directory;
use super::entry::SessionEntry;
use super::known::{Known, Unread};
use crate::lock::locked;
use crate::storage::Catalog;

impl Directory {
    /// Returns the sessions that need a worker, each as soon as it is read, until all are.
    pub(crate) fn unfinished(&self) -> Receiver<SessionId> {
        let (tell, unfinished) = channel();
        locked(&self.known).unfinished = Some(tell);
        unfinished
    }

    /// Looks at every session of a home. Those with long logs are left for [`Directory::read_large`].
    pub(crate) fn survey(&self, store: &dyn Catalog) -> std::io::Result<()> {
        store.survey(&|session, loaded| {
            let unread = match &loaded {
                Err(LoadError::Unread { unread, .. }) => Some(*unread),
                _ => None,
            };
            let Some(entry) = SessionEntry::new(store, session, loaded) else { return };
            let mut known = locked(&self.known);
            known.add(session, entry);
            // Unless somebody was here before us.
            if let Some(bytes) =
                unread.filter(|_| known.entries.get(&session).is_some_and(|it| it.is_unread()))
            {
                known.unread.insert(session, Unread { bytes, being_read: false });
            }
        })?;
        let mut known = locked(&self.known);
        (known.surveyed, known.unlisted) = (true, None);
        known.settle();
        self.changed.notify_all();
        Ok(())
    }

    /// Reads the logs that the survey left, the shortest first, as long as there are any that nobody else reads.
    pub(crate) fn read_large(&self, store: &dyn Catalog) {
        while let Some(session) = self.take_next_unread() {
            self.read_taken(store, session);
        }
    }

    /// Returns how many logs are still to be read.
    pub(crate) fn unread(&self) -> usize {
        locked(&self.known).unread.len()
    }

    /// Waits until everything there was at the start is read, and helps with it.
    pub(crate) fn await_all(&self, store: &dyn Catalog) {
        drop(self.known());
        self.read_large(store);
        let known = locked(&self.known);
        drop(self.changed.wait_while(known, |known| !known.is_all_read()));
    }

    /// Waits until everything but long logs is read, at most so long.
    pub(crate) fn await_survey(&self, most: Duration) {
        let known = locked(&self.known);
        drop(self.changed.wait_timeout_while(known, most, |known| !known.surveyed));
    }

    /// Returns what is known, once everything but long logs is read.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        let known = locked(&self.known);
        self.changed.wait_while(known, |known| !known.surveyed).unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, and wakes whoever waits for a log that is read by that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        let mut known = locked(&self.known);
        let unread = known.unread.len();
        let changed = change(&mut known);
        if known.unread.len() < unread {
            known.settle();
            self.changed.notify_all();
        }
        changed
    }

    /// Returns a session, once it is read: by somebody who reads it already, or else by us. Waits for no other.
    pub(super) fn read(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        let is_taken = |known: &mut Known| known.unread.get(&session).is_some_and(|unread| unread.being_read);
        let known = self.changed.wait_while(locked(&self.known), is_taken);
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(unread) = known.unread.get_mut(&session) {
            unread.being_read = true;
            drop(known);
            return self.read_taken(store, session);
        }
        let entry = known.entries.get(&session).cloned();
        if entry.is_some() || known.surveyed {
            return entry;
        }
        drop(known);
        self.load(store, session)
    }

    fn take_next_unread(&self) -> Option<SessionId> {
        let mut known = locked(&self.known);
        let left = known.unread.iter_mut().filter(|(_, unread)| !unread.being_read);
        let (session, unread) = left.min_by_key(|(_, unread)| unread.bytes)?;
        unread.being_read = true;
        Some(*session)
    }

    /// Reads a log that nobody else reads.
    fn read_taken(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        let read = self.load(store, session);
        // Also if it is gone.
        self.change(|known| known.unread.remove(&session));
        read
    }

    /// Loads a session, and takes in what is known of it then.
    fn load(&self, store: &dyn Catalog, session: SessionId) -> Option<SessionEntry> {
        let entry = SessionEntry::new(store, session, store.load(session, Want::Status));
        self.change(|known| {
            match entry {
                Some(entry) => known.add(session, entry),
                None if known.entries.contains_key(&session) => known.forget(session),
                None => {}
            }
            known.entries.get(&session).cloned()
        })
    }
}
