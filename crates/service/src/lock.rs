//! Locks: a mutex that somebody panicked with is taken as it is; and locks by name.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these guard is changed in single steps: a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks by name: whoever has one keeps nobody from having another. Those that nobody has take no room.
#[derive(Debug, Default)]
pub(crate) struct NamedLocks {
    held: Mutex<HashSet<String>>,
    released: Condvar,
}

impl NamedLocks {
    /// Waits for the lock of a name, and has it until what is returned is dropped.
    pub(crate) fn lock<'a>(&'a self, name: &'a str) -> NamedLock<'a> {
        let held = locked(&self.held);
        let held = self.released.wait_while(held, |held| held.contains(name));
        held.unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        NamedLock { locks: self, name }
    }
}

/// The lock of one name, held.
pub(crate) struct NamedLock<'a> {
    locks: &'a NamedLocks,
    name: &'a str,
}

impl Drop for NamedLock<'_> {
    fn drop(&mut self) {
        locked(&self.locks.held).remove(self.name);
        self.locks.released.notify_all();
    }
}
