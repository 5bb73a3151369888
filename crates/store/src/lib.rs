//! Keeps sessions on disk. Owns fsync, atomicity and encoding; synchronous throughout.
//!
//! [`Store`] is the door. Behind it: one committer and one write-ahead log for all streams ([`commit`]), of which sessions are one kind,
//! logs that are read without being loaded ([`log`]), caches that may be deleted, blobs, and the lock that
//! makes one process the owner of a home. All of it touches files through [`disk`] alone.

pub mod access_list;
pub mod aside;
mod blob_error;
pub mod blob_references;
pub mod blobs;
mod cache;
pub mod check;
pub mod commit;
pub mod crash_report;
pub mod disk;
mod error;
pub mod fold;
mod forks;
mod history;
pub mod home;
mod home_files;
mod index;
pub mod kept_snapshots;
mod lagging;
pub mod layout;
mod line_codec;
mod list_file;
mod load;
mod load_stream;
pub mod log;
mod log_directory;
pub mod meter;
mod missing_logs;
mod observers;
pub mod offline;
mod packs;
mod pipeline_fold;
mod pipeline_runs;
mod recover;
mod redo;
pub mod repairs;
mod reserve;
pub mod run_files;
mod session_files;
mod session_fold;
mod staged_run;
pub mod staging;
pub mod step_cache;
mod store;
mod survey;
mod tasks_fold;
mod threads;
pub mod trusted_configs;
mod unwritten_logs;
mod wal;

pub use error::{AppendError, PathError};
pub use forks::keep_forked_history;
pub use history::History;
pub use line_codec::Codec;
pub use load::{LoadError, Loaded, Want};
pub use observers::Observer;
pub use pipeline_runs::PipelineRuns;
pub use recover::{RecoverError, Recovered};
pub use redo::Completion;
pub use session_fold::SessionFold;
pub use staged_run::{StagedRun, StagedRunError};
pub use store::{ForkError, ImportStagedError, KeepError, OpenError, OpenSessionError, Opener, Store};
pub use survey::Visitor;
pub use wal::frame::Unknown;
pub use wal::scan::{ScanError, WalDamage};
