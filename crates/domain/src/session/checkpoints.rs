//! Checkpoints of runs as a snapshot tells them. What they say in full is in their records.

use serde::{Deserialize, Serialize};

use crate::blob_id::BlobId;
use crate::event::{CheckpointHow, NotTakenReason};
use crate::id::{BootId, RunId};
use crate::time::Timestamp;

/// The two checkpoints of a run, as far as they are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Before its prompt was given to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Checkpoint>,
    /// After its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Checkpoint>,
}

impl Checkpoints {
    /// Tells whether none is recorded.
    pub fn is_empty(&self) -> bool {
        *self == Checkpoints::default()
    }
}

/// A checkpoint in brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its record.
    pub seq: u64,
    /// Whether it was taken when it was time.
    pub how: CheckpointHow,
    /// The tree; none if it was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<BlobId>,
    /// Why it was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_taken: Option<NotTakenReason>,
    /// At the end: how much is not what it was at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<Touched>,
}

/// How many files were touched, and lines in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// Files.
    pub files: u64,
    /// Lines that came.
    pub lines_added: u64,
    /// Lines that went.
    pub lines_removed: u64,
}

/// A run that has ended, and whose checkpoint at its end is not recorded although the one at its start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedEnd {
    /// The run.
    pub run_id: RunId,
    /// The newest daemon life that had it.
    pub boot_id: BootId,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its checkpoint at its start.
    pub start: Checkpoint,
}
