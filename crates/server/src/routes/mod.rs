//! Handlers, a file for each thing they are about. Each translates one request into one call of the daemon.

pub(crate) mod daemon;
pub(crate) mod diff;
pub(crate) mod forks;
pub(crate) mod pipelines;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod snapshots;
pub(crate) mod tasks;
pub(crate) mod waits;
pub(crate) mod worktree;
