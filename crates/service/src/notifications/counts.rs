//! What is counted of deliveries: by sink, because one that fails is to be seen beside those that do not.

use rekindle_notify::outbox::Outcome;
use rekindle_store::meter::Counter;

/// Counts of one sink.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// Ended, by [`Outcome::ALL`].
    pub(super) ended: [Counter; Outcome::ALL.len()],
    /// Attempts that failed and are repeated.
    pub(super) failed: Counter,
}

/// How it stands with one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SinkCounts {
    /// Its name.
    pub(crate) sink: String,
    /// Deliveries that ended, by how.
    pub(crate) ended: Vec<(&'static str, u64)>,
    /// Attempts that failed and are repeated.
    pub(crate) failed: u64,
    /// Notices that wait.
    pub(crate) waiting: u64,
    /// How long the oldest of them has waited, in milliseconds.
    pub(crate) oldest_ms: u64,
}

impl Deliveries {
    pub(super) fn count(&self, outcome: Outcome) {
        self.ended[outcome as usize].inc();
    }
}
