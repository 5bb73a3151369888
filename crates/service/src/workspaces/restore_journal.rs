//! The journal of a restore, in the home: what an interrupted restore left, for whoever finishes it.

use std::io;
use std::path::PathBuf;

use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_workspace::restore::{Journal, JournalFile};

use super::restore_objects::RestoreObjects;
use super::restore_receipt::{ReceiptFile, RestoreReceipt};

/// Largest journal that is read: it names some trees.
const MAX_JOURNAL: u64 = 1 << 20;

/// The journal of the restores of one directory.
pub(super) struct HomeJournal<'a> {
    pub(super) disk: &'a SharedDisk,
    pub(super) path: PathBuf,
    pub(super) objects: &'a RestoreObjects,
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
        replace(&**self.disk, &self.path, &serde_json::to_vec(journal)?)
    }

    fn remove(&self) -> io::Result<()> {
        if let Some((file, purpose)) = &self.receipt
            && let Some(Journal { from, to, .. }) = self.read()?
        {
            file.write(&RestoreReceipt { purpose: (*purpose).to_owned(), from, to })?;
        }
        if_exists(self.disk.remove_file(&self.path))?;
        self.path.parent().map_or(Ok(()), |directory| self.disk.sync_dir(directory))
    }
}
