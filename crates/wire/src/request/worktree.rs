//! The worktree that a session or a task asks for.

use rekindle_domain::event::DirtyPolicy;
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
