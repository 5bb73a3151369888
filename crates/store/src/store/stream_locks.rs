//! A lock for each stream: whoever loads one keeps nobody from loading another.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::StreamId;

/// The locks of all streams; those that nobody has take no room.
#[derive(Default)]
pub(super) struct StreamLocks {
    held: Mutex<HashSet<StreamId>>,
    let_go: Condvar,
}

impl StreamLocks {
    /// Waits for the lock of a stream, and has it until what is returned is dropped.
    pub(super) fn lock(&self, stream: StreamId) -> StreamLock<'_> {
        let mut held = self.held();
        while !held.insert(stream) {
            held = self.let_go.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        StreamLock { locks: self, stream }
    }

    fn held(&self) -> MutexGuard<'_, HashSet<StreamId>> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock of one stream, held.
pub(super) struct StreamLock<'a> {
    locks: &'a StreamLocks,
    stream: StreamId,
}

impl Drop for StreamLock<'_> {
    fn drop(&mut self) {
        self.locks.held().remove(&self.stream);
        self.locks.let_go.notify_all();
    }
}
