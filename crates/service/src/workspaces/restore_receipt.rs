//! The receipt of a restore: what came of it, on disk before its journal goes, for somebody who may die before he has written that
//! down. Whoever asks again for the same purpose is told the true way back, and not that there was nothing to do.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use serde::{Deserialize, Serialize};

/// Largest receipt that is read: it names two trees.
const MAX_RECEIPT: u64 = 1 << 16;

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RestoreReceipt {
    /// Who asked for it, and for what: the same for each attempt, and for nothing else.
    pub(super) purpose: String,
    /// The way back.
    pub(super) from: BlobId,
    /// The tree that was wanted.
    pub(super) to: BlobId,
}

/// The place of the receipt of a directory's restores.
pub(super) struct ReceiptFile<'a> {
    pub(super) disk: &'a SharedDisk,
    pub(super) path: PathBuf,
}

impl ReceiptFile<'_> {
    /// Writes a receipt over an earlier one, durably.
    pub(super) fn write(&self, receipt: &RestoreReceipt) -> io::Result<()> {
        if let Some(directory) = self.path.parent().filter(|directory| self.disk.stat(directory).is_err()) {
            self.disk.create_dir(directory)?;
            directory.parent().map_or(Ok(()), |above| self.disk.sync_dir(above))?;
        }
        replace(&**self.disk, &self.path, &serde_json::to_vec(receipt)?)
    }

    /// Returns the way back of a restore that has come to its end, if it was this one. One that cannot be read says nothing.
    pub(super) fn way_back(&self, purpose: &str, to: BlobId) -> Option<BlobId> {
        let bytes = read_all(&**self.disk, &self.path, MAX_RECEIPT).ok()?;
        let receipt: RestoreReceipt = serde_json::from_slice(&bytes).ok()?;
        (receipt.purpose == purpose && receipt.to == to).then_some(receipt.from)
    }

    /// Removes it; one that stays is of no use to anybody.
    pub(super) fn remove(&self) -> io::Result<()> {
        if_exists(self.disk.remove_file(Path::new(&self.path))).map(drop)
    }
}
