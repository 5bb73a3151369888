//! Contention that a test makes: others come before its next appends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many others come before the next appends.
#[derive(Clone, Default)]
pub(crate) struct Others(Arc<AtomicU32>);

impl Others {
    /// Has so many others come first.
    pub(crate) fn come_first(&self, others: u32) {
        self.0.store(others, Ordering::Relaxed);
    }

    /// Tells whether one of them comes before an append.
    pub(super) fn came_first(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |others| others.checked_sub(1)).is_ok()
    }
}
