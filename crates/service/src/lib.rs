//! The daemon's services: an agent's journal becomes its session's log, and what the log says is to be sent is sent. The rules
//! are below, in the domain and the agent crate; here they meet files and processes.
//!
//! From the top: `daemon` is the door; `commands` handle what is asked of sessions, `tasks` queue work for them; `metrics` and `feed` tell how things stand and what
//! is new; `show` turns state into what callers see; `drive` runs agents, one worker for each session; `snapshots` keeps what sessions were; `notifications` tell people elsewhere. What lies beside
//! these folders is what they stand on: `worker_pool` has workers whatever they do, `records` what they write, `session_span` whose lines
//! are in the log.

pub mod access;
mod answer_links;
pub mod boottime;
mod budget_check;
pub mod bundles;
mod commands;
mod config_trust;
pub mod daemon;
mod drive;
pub mod error;
pub mod feed;
pub mod home;
pub mod idempotency;
mod ids;
pub mod importers;
mod lock;
mod lock_file;
mod log_search;
pub mod metrics;
pub mod notifications;
mod pipeline_config;
mod pipelines;
mod records;
mod run_summary;
mod search;
mod session_span;
mod show;
#[cfg(test)]
mod situations;
pub mod snapshots;
pub mod storage;
mod task_database;
mod task_history;
mod task_link;
pub mod task_rows;
mod tasks;
mod test_knobs;
mod ticks;
pub mod upkeep;
mod worker_pool;
pub mod workspaces;

pub use drive::{live, look_for_holder};
pub use rekindle_store::crash_report::{self, AtWork};
pub use rekindle_store::disk::is_out_of_descriptors;
pub use search::search_home;
pub use session_span::session_span;
pub use show::{
    RunCheckpoints, all_checkpoints, find_run_checkpoints, held_without_daemon, last_words, log,
    run_end_reason, run_view, session_view, skipped_paths,
};
pub use test_knobs::hurried;
