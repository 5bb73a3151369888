//! What reaches beyond a session: worktrees of its own.

pub(crate) mod worktree;
