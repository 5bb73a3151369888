//! What is counted of checkpoints of runs.

use std::time::Duration;

use rekindle_domain::event::{NotTaken, NotTakenReason};
use rekindle_store::meter::{Counter, Histogram};

use super::TakenCapture;

/// Counts of captures for checkpoints; one may be the end of a run and the start of the next.
#[derive(Debug, Default)]
pub(crate) struct CheckpointCounts {
    /// Directories that were captured.
    pub(crate) taken: Counter,
    /// Those that were not captured because they are too large, took too long, or are being restored.
    pub(crate) skipped: Counter,
    /// Those that could not be captured.
    pub(crate) failed: Counter,
    /// Bytes that captures added to the store.
    pub(crate) bytes: Counter,
    /// How long a capture took that was taken.
    pub(crate) took: Histogram,
}

impl CheckpointCounts {
    /// Counts a directory that was captured.
    pub(crate) fn add_taken(&self, taken: &TakenCapture, took: Duration) {
        self.taken.inc();
        self.bytes.add(taken.bytes());
        self.took.observe(took);
    }

    /// Counts one that was not.
    pub(crate) fn add_not_taken(&self, not_taken: &NotTaken) {
        match not_taken.reason {
            NotTakenReason::TimedOut | NotTakenReason::TooLarge | NotTakenReason::Restoring => {
                self.skipped.inc()
            }
            NotTakenReason::Unreadable
            | NotTakenReason::NoRoom
            | NotTakenReason::Failed
            | NotTakenReason::Unknown => self.failed.inc(),
        }
    }
}
