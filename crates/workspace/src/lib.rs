//! What a directory contains, apart from where it is kept: tree objects, which paths count, capture, comparison, restore.
//! Objects go to an [`ObjectSink`] and come from an [`ObjectSource`]; this crate owns no storage, and only `restore` writes into
//! a workspace.

pub mod capture;
pub mod compare;
pub mod manifest;
pub mod objects;
mod record;
pub mod restore;
pub mod rules;
pub mod skipped;
mod stamp;
pub mod stat_cache;
#[cfg(test)]
mod test_git;
pub mod tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use capture::{CaptureError, CaptureOptions, Captured, Totals, capture};
pub use compare::{Change, Changed, Comparison, compare};
pub use manifest::Manifest;
pub use objects::{MemoryObjects, ObjectSink, ObjectSource};
pub use rekindle_domain::path_name;
pub use skipped::{Skip, SkipReason, Skipped};
pub use stat_cache::StatCache;

/// Returns bytes as the path that they are.
fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
