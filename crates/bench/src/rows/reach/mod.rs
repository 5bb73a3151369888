//! What reaches beyond a session: worktrees of its own, and people elsewhere.

mod hook;
pub(crate) mod slow_target;
pub(crate) mod webhook;
pub(crate) mod worktree;
