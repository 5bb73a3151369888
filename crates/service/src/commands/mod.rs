//! Requests handled: what is asked of a session becomes records, and a worker does the rest.

pub(crate) mod cancel_run;
pub(crate) mod fork;
pub(crate) mod keyed_session;
mod message_deduplication;
pub(crate) mod messages;
mod open_runs;
pub(crate) mod restore_snapshot;
pub(crate) mod resume_session;
pub(crate) mod resume_tokens;
pub(crate) mod rewind;
pub(crate) mod session_worktree;
pub(crate) mod sessions;
pub(crate) mod snapshots;
mod successor;
pub(crate) mod update_session;
pub(crate) mod waits;
mod working_directory;
pub(crate) mod worktree_plan;

use std::sync::Mutex;

pub(crate) use working_directory::check_directory;

use crate::lock::NamedLocks;

/// Held by requests that must not be handled beside others of their kind.
#[derive(Default)]
pub(crate) struct Locks {
    /// By whoever makes a session with an idempotency key, in the name of that key, or one with a key of its own.
    keyed: NamedLocks,
    /// By whoever merges or removes a worktree, or gives it to another session, in the name of its directory.
    worktrees: NamedLocks,
    /// By whoever changes options of a session.
    options: Mutex<()>,
}
