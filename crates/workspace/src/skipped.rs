//! What a capture leaves out although the rules include it, and why. Nothing is left out silently.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use serde::{Deserialize, Serialize};

/// How many skipped paths are told in a record; the others are in an object.
pub const MAX_TOLD: usize = 200;

/// Bytes of their paths, likewise: a record has a limit, whatever the paths are.
pub const MAX_TOLD_BYTES: usize = 32 << 10;

/// Why a path is not in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Neither a regular file nor a directory nor a link: a socket, a pipe, a device.
    Special,
    /// It may not be read, or the disk cannot: a directory is left out whole.
    Unreadable,
    /// A file above the limit of a capture, or a directory with more in it than a tree object holds.
    TooLarge,
    /// It changed each time it was read.
    Changing,
    /// A linked worktree of git, or the directory of another session.
    Worktree,
    /// No tree may have an entry of this name, because some file system takes it for `.git`.
    Name,
    /// A directory deeper than trees go.
    TooDeep,
}

/// A path that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// The path from the root.
    pub path: Vec<u8>,
    /// Why.
    pub reason: SkipReason,
}

/// Everything that one capture skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many paths, by reason.
    pub totals: BTreeMap<SkipReason, u64>,
    /// The first of them in the order of their paths: at most [`MAX_TOLD`], with at most [`MAX_TOLD_BYTES`].
    pub first: Vec<Skip>,
    /// The object with all of them, one JSON object a line, if there are more.
    pub all: Option<BlobId>,
}

impl Skipped {
    /// Returns how many paths were skipped.
    pub fn total(&self) -> u64 {
        self.totals.values().sum()
    }
}
