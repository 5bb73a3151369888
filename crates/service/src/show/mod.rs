//! State as it is shown: sessions, runs, waits and logs as callers see them, one at a time or in lists.

mod diff;
mod directory;
mod lists;
pub mod log;
mod log_details;
pub(crate) mod page_key;
mod run_view;
mod session;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use diff::run_diff;
pub use diff::{RunCheckpoints, all_checkpoints, find_run_checkpoints, skipped_paths};
pub(crate) use directory::{Directory, SessionEntry};
pub(crate) use lists::{DIRECTORIES, directory_state, fits, page_size};
pub(crate) use log_details::LogDetails;
pub use log_details::last_words;
pub use run_view::{run_end_reason, run_view};
pub use session::{held_without_daemon, session_view};
pub(crate) use waits::{ended_wait, request_of, request_summary};

use crate::drive::worker::Workers;
use crate::storage::Catalog;

/// What is shown of sessions, and from where it is taken.
pub(crate) struct Views {
    pub(crate) workers: Arc<Workers>,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) log_details: Arc<LogDetails>,
    /// Where worktrees of sessions are made.
    pub(crate) worktrees: PathBuf,
}

impl Views {
    pub(crate) fn store(&self) -> &dyn Catalog {
        &*self.catalog
    }
}
