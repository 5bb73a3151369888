//! The journal of a restore, in the home: what an interrupted restore left, for whoever finishes it.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_workspace::restore::{Journal, JournalFile};

use super::crash_point_root::STEP;
use super::restore_objects::RestoreObjects;
use super::restore_receipt::{ReceiptFile, RestoreReceipt};
use crate::test_knobs::crash_point;

/// Largest journal that is read: it names some trees.
const MAX_JOURNAL: u64 = 1 << 20;

/// Reads the journal that an interrupted restore left; nothing if there is none that can be read.
pub(super) fn unfinished(disk: &SharedDisk, path: &Path) -> Option<Journal> {
    let bytes = read_all(&**disk, path, MAX_JOURNAL).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The journal of the restores of one directory.
pub(super) struct HomeJournal<'a> {
    pub(super) disk: &'a SharedDisk,
    pub(super) path: PathBuf,
    pub(super) objects: &'a RestoreObjects,
    /// Keeps the way back by name before it goes: nobody else names it from then on.
    pub(super) keep: &'a dyn Fn(BlobId) -> io::Result<()>,
    /// The receipt that is written before it goes, and for whom.
    pub(super) receipt: Option<(ReceiptFile<'a>, &'a str)>,
}

impl JournalFile for HomeJournal<'_> {
    fn read(&self) -> io::Result<Option<Journal>> {
        let Some(bytes) = if_exists(read_all(&**self.disk, &self.path, MAX_JOURNAL))? else {
            return Ok(None);
        };
        let damaged = |error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged: {error}", self.path.display()))
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn write(&self, journal: &Journal) -> io::Result<()> {
        self.objects.commit()?;
        crash_point(STEP);
        replace(&**self.disk, &self.path, &serde_json::to_vec(journal)?)?;
        crash_point(STEP);
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        if let Some(Journal { from, to, .. }) = self.read()? {
            (self.keep)(from)?;
            crash_point(STEP);
            if let Some((file, purpose)) = &self.receipt {
                file.write(&RestoreReceipt { purpose: (*purpose).to_owned(), from, to })?;
            }
        }
        crash_point(STEP);
        if_exists(self.disk.remove_file(&self.path))?;
        crash_point(STEP);
        self.path.parent().map_or(Ok(()), |directory| self.disk.sync_dir(directory))
    }
}
