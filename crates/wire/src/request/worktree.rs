//! The worktree that a session or a task asks for.

use rekindle_domain::event::{DirtyPolicy, MergeMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A worktree of git for a session of its own: a directory that nobody else works in, on a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorktree {
    /// Its branch: one that is there goes on; `rekindle/<title>-<id>` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub branch: Option<String>,
    /// The commit, branch or tag where a new branch begins; where the working directory stands without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub base: Option<String>,
    /// What becomes of changes in the working directory that are not committed.
    #[serde(default, skip_serializing_if = "DirtyPolicy::is_default")]
    pub dirty: DirtyPolicy,
}

/// A merge of a session's worktree into the directory that it was made for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeWorktree {
    /// How.
    #[serde(default, skip_serializing_if = "MergeMethod::is_default")]
    pub method: MergeMethod,
    /// What the commit says that is made of files that are not committed, or with `squash` of everything; the session's title without
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000))]
    pub message: Option<String>,
}
