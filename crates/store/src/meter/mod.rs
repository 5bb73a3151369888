//! What the store counts of its own work: plain atomics, so that counting costs the committer nanoseconds and whoever reads
//! never makes it wait. Everything begins at zero with the process; names and labels are given further up.

mod gauges;
mod histogram;
mod records;

pub use gauges::{Counter, Gauge};
pub use histogram::{Histogram, LATENCIES, Reading};
pub use records::Records;

use rekindle_domain::time::Timestamp;

/// What is counted of a store.
#[derive(Debug, Default)]
pub struct Meter {
    /// From handing an append over until its answer is there, refusals included.
    pub appends: Histogram,
    /// Syncs of the write-ahead log.
    pub syncs: Histogram,
    /// Checkpoints, those that failed included: appends go on for most of the time.
    pub checkpoints: Histogram,
    /// Checkpoints that could not be made.
    pub failed_checkpoints: Counter,
    /// Records that were committed.
    pub records: Records,
    /// Writes that found no room.
    pub full: Counter,
    /// Writes that failed otherwise and certainly did not happen.
    pub failed: Counter,
    /// Writes of which nobody knows whether a restart will see them.
    pub unknown: Counter,
    /// Bytes in the write-ahead log since its last checkpoint.
    pub wal_bytes: Gauge,
    /// Files of the write-ahead log since its last checkpoint.
    pub wal_segments: Gauge,
    /// Whether the room for the last words is there.
    pub reserve_kept: Gauge,
    /// When the last checkpoint was made, in milliseconds.
    checkpoint_at: Gauge,
}

impl Meter {
    /// A checkpoint was made.
    pub(crate) fn checkpointed(&self, now: Timestamp) {
        self.checkpoint_at.set(u64::try_from(now.as_millis()).unwrap_or(0));
    }

    /// Returns how old the last checkpoint is, in milliseconds.
    pub fn checkpoint_age(&self, now: Timestamp) -> u64 {
        u64::try_from(now.as_millis()).unwrap_or(0).saturating_sub(self.checkpoint_at.get())
    }
}
