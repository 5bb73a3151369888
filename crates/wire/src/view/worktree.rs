//! What became of a session's worktree: what it has that its directory has not, merged, removed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session's worktree has that the directory has not which it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeDiff {
    /// Its branch.
    pub branch: String,
    /// The last commit that both have.
    pub base: String,
    /// How many commits the worktree has behind that.
    pub commits: u64,
    /// How many of its files are not committed.
    pub uncommitted: u64,
    /// How many files differ, committed or not.
    pub total: u64,
    /// How many lines came, in all of them.
    pub lines_added: u64,
    /// How many lines went.
    pub lines_removed: u64,
    /// The files: the first thousand of them.
    pub files: Vec<WorktreeFile>,
    /// The unified diff; null if only numbers were asked for.
    pub diff: Option<String>,
    /// The diff is longer than what is told of it.
    pub cut: bool,
}

/// A file that is different in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeFile {
    /// Where it is, from the root of the worktree.
    pub path: String,
    /// How many lines came; null if it is no text.
    pub lines_added: Option<u64>,
    /// How many lines went; null if it is no text.
    pub lines_removed: Option<u64>,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeMerged {
    /// The branch that was merged.
    pub branch: String,
    /// The branch that has it now: that of the directory which the worktree was made for.
    pub into: String,
    /// The commit that it stands at.
    pub commit: String,
    /// How many commits it gained; 0 if it had everything already.
    pub commits: u64,
    /// Files that were not committed were committed first.
    pub committed: bool,
}

/// What came of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeRemoved {
    /// Where it was.
    pub directory: String,
    /// Its branch.
    pub branch: String,
    /// The branch is still there: it was not made for the worktree.
    pub branch_kept: bool,
    /// A git bundle with what was nowhere else, which is kept for 30 days; null if there was nothing.
    pub bundle: Option<String>,
}
