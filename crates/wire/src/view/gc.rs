//! Views of what was collected: what went, what stays and why, and what takes the room of a home.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was removed and what stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    /// Checkpoints of runs whose files are not kept any more, or would not be.
    pub expired_checkpoints: u64,
    /// Removed, or would be.
    pub gone: Vec<Gone>,
    /// Left, where someone may have thought it would go.
    pub left: Vec<Left>,
    /// What could not be removed.
    pub failed: Vec<Left>,
    /// What takes room, before anything was removed.
    pub space: Space,
}

impl Collected {
    /// Returns how much room that makes.
    pub fn bytes(&self) -> u64 {
        self.gone.iter().map(|gone| gone.bytes).sum()
    }
}

/// Something that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gone {
    /// `holder`, `blob`, `pack`, `import`, `executable`, `repairs` or `worktree`.
    pub kind: String,
    /// What.
    pub path: String,
    /// Room it took.
    pub bytes: u64,
    /// Why it could go.
    pub why: String,
}

/// Something that stays, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// Of which kind.
    pub kind: String,
    /// What.
    pub path: String,
    /// Why.
    pub why: String,
}

/// The room that a home takes, in bytes, by what holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// Logs of sessions, their caches and the histories of forks.
    pub sessions: u64,
    /// Kept snapshots of sessions.
    pub kept_snapshots: u64,
    /// Contents and trees that checkpoints of runs name and that are kept; null if nobody has looked.
    pub checkpoints: Option<u64>,
    /// All blobs and packs, those of checkpoints included.
    pub blobs: u64,
    /// Snapshots of directories that are kept by name, and what makes the next capture quick.
    pub workspaces: u64,
    /// Journals of holders.
    pub holders: u64,
    /// What imports have staged.
    pub imports: u64,
    /// The write-ahead log.
    pub wal: u64,
    /// Everything else: logs of the daemon, executables, repairs, sessions that were set aside.
    pub other: u64,
}
