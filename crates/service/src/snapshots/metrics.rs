//! What is counted of kept snapshots.

use std::time::Duration;

use rekindle_domain::kept_snapshot::SnapshotReason;
use rekindle_store::meter::{Counter, Histogram};

/// Counts of snapshots that were taken and of sessions that were taken back to one.
#[derive(Debug, Default)]
pub(crate) struct SnapshotCounts {
    /// Taken, by [`SnapshotReason::ALL`].
    taken: [Counter; SnapshotReason::ALL.len()],
    /// Could not be taken.
    pub(crate) failed: Counter,
    /// Bytes on disk of those that were taken.
    pub(crate) bytes: Counter,
    /// How long taking one took.
    pub(crate) took: Histogram,
    /// Sessions that go on from a snapshot, those where that failed, and how long it took until it was recorded.
    pub(crate) restores: Counter,
    pub(crate) failed_restores: Counter,
    pub(crate) restore_took: Histogram,
}

impl SnapshotCounts {
    /// Counts one that was taken.
    pub(super) fn add(&self, reason: SnapshotReason, bytes: u64, took: Duration) {
        self.taken[reason as usize].inc();
        self.bytes.add(bytes);
        self.took.observe(took);
    }

    /// Counts a session that goes on from one.
    pub(crate) fn add_restore(&self, took: Duration) {
        self.restores.inc();
        self.restore_took.observe(took);
    }

    /// Returns how many were taken for each reason that there is.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = SnapshotReason::ALL.into_iter().zip(&self.taken);
        let known = reasons.filter(|(reason, _)| *reason != SnapshotReason::Unknown);
        known.map(|(reason, count)| (reason.as_str(), count.get()))
    }
}
