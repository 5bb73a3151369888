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

    /// How the work of a worktree comes into the directory that it was made for.
    #[derive(Default, JsonSchema)]
    pub enum MergeMethod {
        /// As a merge of two branches; where only one has gone on, without a commit of its own.
        #[default]
        Merge = "merge",
        /// Its commits one after the other, behind those of the directory.
        Rebase = "rebase",
        /// As one commit.
        Squash = "squash",
    }
}

impl MergeMethod {
    /// Tells whether it is the one that nobody has to name.
    pub fn is_default(&self) -> bool {
        *self == MergeMethod::default()
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

/// The worktree that a session works in, as its first record has it, and as it is known since: to be made, or there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// What was asked for.
    #[serde(flatten)]
    pub wanted: SessionWorktree,
    /// The commit that its branch began at, or stood at, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch that it was last merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// It is another session's, whose directory a fork works in: only that one merges and removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// It was removed. No first record says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

impl Worktree {
    /// Returns one that is to be made.
    pub fn wanted(wanted: SessionWorktree) -> Worktree {
        Worktree { wanted, commit: None, merged_into: None, shared: false, removed: false }
    }
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
    /// How many files were copied that git ignores.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied: u64,
    /// The command that prepared it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<WorktreeSetup>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A command that prepared a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeSetup {
    /// The command.
    pub command: Vec<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// The end of what it said.
    pub output: String,
}

/// The work of a session's worktree is in the directory that it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWorktreeMerged<'a> {
    /// The branch of that directory.
    #[serde(borrow)]
    pub into: Cow<'a, str>,
    /// The commit that the branch stands at now.
    #[serde(borrow)]
    pub commit: Cow<'a, str>,
    /// How many commits the branch gained.
    #[serde(default)]
    pub commits: u64,
    /// How it was merged.
    #[serde(default, skip_serializing_if = "MergeMethod::is_default")]
    pub method: MergeMethod,
    /// Who asked for it.
    #[serde(borrow)]
    pub by: Cow<'a, str>,
}

/// A session's worktree was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWorktreeRemoved<'a> {
    /// The file that has what was nowhere else, if there was anything.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Cow<'a, str>>,
    /// Who asked for it.
    #[serde(borrow)]
    pub by: Cow<'a, str>,
}
