//! Pins: what a batch wrote or reused stays until the record that names it is durable.
//!
//! They are in memory. A collection in this process sees them; one in another is kept out by the lock that they hold.

use std::collections::HashSet;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;

use super::pack::Pack;
use super::table::{Hold, Packs};

/// A guard over everything that a batch wrote or reused: drop it when the record that names it is durable.
#[must_use = "what the batch wrote may be collected as soon as this is dropped"]
pub struct Pins {
    packs: Arc<Packs>,
    pinned: Vec<Arc<Pack>>,
    blobs: HashSet<BlobId>,
    /// The room that what was written takes.
    written: u64,
    // Dropped last: whoever gets the lock next finds nothing pinned.
    _hold: Arc<Hold>,
}

impl Pins {
    pub(crate) fn new(packs: Arc<Packs>, hold: Arc<Hold>) -> Pins {
        Pins { packs, pinned: Vec::new(), blobs: HashSet::new(), written: 0, _hold: hold }
    }

    /// Returns how many bytes the batch has added to the store.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn set_written(&mut self, bytes: u64) {
        self.written = bytes;
    }

    /// Pins a pack, once. The caller has the table, so that nobody takes the pack out meanwhile.
    pub(crate) fn pin(&mut self, pack: &Arc<Pack>) {
        if !self.has(pack) {
            pack.pin();
            self.pinned.push(pack.clone());
        }
    }

    /// Takes over a pin that was taken for it.
    pub(crate) fn adopt(&mut self, pack: Arc<Pack>) {
        self.pinned.push(pack);
    }

    /// Tells whether it pins a pack.
    pub(crate) fn has(&self, pack: &Pack) -> bool {
        self.pinned.iter().any(|pinned| pinned.id == pack.id)
    }

    /// Pins a blob with a file of its own, if it is there.
    pub(crate) fn pin_blob(&mut self, id: &BlobId, is_there: impl FnOnce() -> bool) -> bool {
        if self.blobs.contains(id) {
            return true;
        }
        let there = self.packs.pin_blob(id, is_there);
        if there {
            self.blobs.insert(*id);
        }
        there
    }

    /// Returns the blobs that it pins.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        self.blobs.iter()
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let round = self.packs.round();
        self.pinned.iter().for_each(|pack| pack.unpin(round));
        self.blobs.iter().for_each(|id| self.packs.unpin_blob(id));
    }
}
