//! Which directories have no name that a power cut could take.
//!
//! A process that died between a rename and the sync behind it leaves a name that everybody sees and that is not durable.
//! Whoever relies on a file it did not write therefore has its directory synced once.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::disk::Disk;

/// The directories that were synced since this process last changed a name in them.
#[derive(Default)]
pub(crate) struct SyncedDirs(Mutex<HashSet<PathBuf>>);

impl SyncedDirs {
    /// Makes the names in a directory durable, unless they are.
    pub(crate) fn ensure(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(dir) {
            return Ok(());
        }
        disk.sync_dir(dir)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_owned());
        Ok(())
    }

    /// Notes that a name in a directory changes, or may have.
    pub(crate) fn changed(&self, dir: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(dir);
    }
}
