//! Looking after a home: what is wrong with it, what of that can be put right by proof, what is there for nothing. Works
//! without a daemon; what it shares with one is in one place.
//!
//! [`examine`] looks and changes nothing. [`repair`] does what is provably safe, keeps what it takes away, and looks
//! again. [`gc`] removes what nobody needs any more.

mod checkpoint_findings;
mod checkpoint_records;
mod doctor;
mod expired_checkpoints;
mod garbage_collector;
mod gc;
mod holders;
mod ingested;
mod repair;
mod run_findings;
mod task_row_findings;
mod worktree_users;

pub use doctor::examine;
pub use garbage_collector::CollectionPolicy;
pub(crate) use garbage_collector::GarbageCollector;
pub use gc::{CacheRetention, CheckpointRetention, GcOptions, gc};
pub use holders::{Holder, Standing, inspect_holders};
pub(crate) use ingested::{is_ingested, launched};
pub use repair::{Done, RepairAction, RepairError, RepairOptions, Repaired, mend, repair};
pub use task_row_findings::TaskRows;

/// Writes a path, which need not be UTF-8, as JSON, which must be.
pub(crate) fn lossy<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
