//! The note of checkpoints whose files were let go: what is missing on purpose is told from what is lost. Each collection writes it
//! anew, from the logs, before anything goes.
//!
//! Trees are named by their short names: whole ones would count as names of blobs that are needed.

use std::collections::{BTreeSet, HashSet};
use std::io;

use rekindle_store::blobs::BlobId;
use rekindle_store::disk::{Disk, if_exists, read_all, replace};
use rekindle_store::layout::Layout;
use rekindle_workspace::tree::short_name;
use serde::{Deserialize, Serialize};

/// The version of the note.
const VERSION: u32 = 1;

/// Largest note that is read: four million checkpoints.
const MAX_BYTES: u64 = 128 << 20;

#[derive(Serialize, Deserialize)]
struct Note {
    version: u32,
    snapshots: BTreeSet<String>,
}

/// Notes which trees are let go; those of earlier notes that no log tells of any more are forgotten.
pub(super) fn note(disk: &dyn Disk, layout: &Layout, expired: &BTreeSet<BlobId>) -> io::Result<()> {
    let path = layout.expired_checkpoints();
    let snapshots: BTreeSet<String> = expired.iter().map(short_name).collect();
    let is_known = match read_all(disk, &path, MAX_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).is_ok_and(|known: Note| known.snapshots == snapshots),
        Err(error) if error.kind() == io::ErrorKind::NotFound => snapshots.is_empty(),
        Err(_) => false,
    };
    if is_known {
        return Ok(());
    }
    disk.create_dir(&layout.workspaces())?;
    disk.sync_dir(layout.home())?;
    replace(disk, &path, &serde_json::to_vec(&Note { version: VERSION, snapshots })?)
}

/// Returns the short names of the trees that were let go; none if there is no note, or none that can be read.
pub(super) fn read(disk: &dyn Disk, layout: &Layout) -> HashSet<String> {
    let bytes = if_exists(read_all(disk, &layout.expired_checkpoints(), MAX_BYTES)).ok().flatten();
    let note = bytes.and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
    note.map(|note| note.snapshots.into_iter().collect()).unwrap_or_default()
}
