//! Tasks, runs of sessions and pipeline runs as rows of a database, made of the logs: which database that is, the records that it does not have yet, and whether
//! it says what the logs say.

mod catch_up;
mod catch_up_pipelines;
mod catch_up_sessions;
mod compare;
mod connect;
mod log_source;
mod network_file_system;
mod postgres_client;
mod rebuild;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rekindle_store::home::HomeId;
use rekindle_taskdb::project::Owner;

pub use self::catch_up::{CatchUpError, catch_up};
pub(crate) use self::catch_up_pipelines::catch_up_pipeline;
pub(crate) use self::catch_up_sessions::{Reached, UnknownTask, catch_up_session};
pub(crate) use self::compare::{Differences, compare};
pub use self::connect::DatabaseChoice;
pub(crate) use self::connect::{NotConnected, connect, connect_to_read, connect_to_write};
pub use self::log_source::Logs;
pub(crate) use self::rebuild::write_all;

/// Where rows of tasks are, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Which database has them.
    pub choice: DatabaseChoice,
    /// How long rows of tasks that have ended are kept.
    pub keep_tasks: Duration,
    /// How long histories of tasks without a row are kept.
    pub keep_history: Duration,
}

impl Default for DatabaseSettings {
    fn default() -> DatabaseSettings {
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        DatabaseSettings { choice: DatabaseChoice::default(), keep_tasks: days(90), keep_history: days(365) }
    }
}

/// Returns whose rows a home's are.
pub(crate) fn owner_of(home_id: HomeId) -> Owner {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Owner { home_id: home_id.to_string(), host }
}
