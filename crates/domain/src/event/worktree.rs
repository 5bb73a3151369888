//! Worktrees of git: what a session wants before anything begins in it, and that it was made.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enums;

string_enums! {
    /// What becomes of changes that are not committed in the directory for which a worktree is made.
    #[derive(Default, JsonSchema)]
    pub enum DirtyPolicy {
        /// None is made while there are any.
        #[default]
        Refuse = "refuse",
        /// They stay where they are.
        Ignore = "ignore",
        /// They are copied, tracked files and new ones, but for those that git ignores.
        Carry = "carry",
    }
}

impl DirtyPolicy {
    /// Tells whether it is the one that nobody has to name.
    pub fn is_default(&self) -> bool {
        *self == DirtyPolicy::default()
    }
}

/// A worktree of a git repository, to be made: everything that `git worktree add` needs, whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitWorktree {
    /// The git directory of the repository, which all its worktrees share.
    pub repository: String,
    /// Where it is made: the session's directory, or one above that.
    pub directory: String,
    /// The commit that it has, detached.
    pub commit: String,
}

/// A worktree of its own for a session, on a branch, made before its first agent is launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWorktree {
    /// The directory that it is made for, in another worktree of the repository.
    pub origin: String,
    /// The git directory of the repository, which all its worktrees share.
    pub repository: String,
    /// Where it is made: the session's directory, or one above that.
    pub directory: String,
    /// Its branch: one that is there goes on, else it begins at `base`.
    pub branch: String,
    /// Where the branch begins; without it where `origin` stands when the worktree is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What becomes of changes in `origin` that are not committed.
    #[serde(default, skip_serializing_if = "DirtyPolicy::is_default")]
    pub dirty: DirtyPolicy,
}

/// The worktree that a session wanted is there, and whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWorktreeAdded<'a> {
    /// The commit that its branch began at, or stood at.
    #[serde(borrow)]
    pub commit: Cow<'a, str>,
    /// How many changes that are not committed were copied.
    #[serde(default)]
    pub carried: u64,
}
