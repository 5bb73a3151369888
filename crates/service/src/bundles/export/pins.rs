//! Pins of an export: the names of everything that it may write, in a file of the home for as long as it works. A collection counts
//! them like all names in a home. The lock of those who capture is not held meanwhile: a bundle takes as long as its reader likes.

use std::collections::HashSet;
use std::fmt::Write;
use std::io;
use std::time::Duration;

use rekindle_domain::blob_id::BlobId;
use rekindle_store::blobs::Blobs;
use rekindle_store::disk::{SharedDisk, if_exists};
use rekindle_store::layout::Layout;

use crate::ids::random;
use crate::lock_file::LockFile;

/// How long to wait for a collection that has read its names before ours were there: it reads every log of the home.
const COLLECTED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// What an export may write is not collected for as long as this lives, or its process does.
pub(super) struct ExportPins {
    _file: LockFile,
}

impl ExportPins {
    /// Pins objects. What is gone already stays so; what is found from here on does not go.
    pub(super) fn new(
        disk: &SharedDisk,
        layout: &Layout,
        named: &[HashSet<BlobId>],
    ) -> io::Result<ExportPins> {
        let directory = layout.exports();
        if disk.stat(&directory).is_err() {
            disk.create_dir(&directory)?;
        }
        let file = loop {
            let number: u128 = random().map_err(io::Error::other)?;
            // A collection may look whether its holder is dead before it is held.
            if let Some(file) = LockFile::take(disk, &directory.join(format!("{number:032x}.names")))? {
                break file;
            }
        };
        let mut text = String::new();
        for id in named.iter().flatten() {
            let _ = writeln!(text, "{id}");
        }
        file.write(text.as_bytes())?;
        let blobs = Blobs::reading(disk.clone(), layout.clone());
        blobs.await_collection(COLLECTED_WITHIN).map_err(io::Error::other)?;
        Ok(ExportPins { _file: file })
    }
}

/// Removes the pins of exports whose process is dead.
pub(crate) fn remove_dead_pins(disk: &SharedDisk, layout: &Layout) -> io::Result<()> {
    let directory = layout.exports();
    for entry in if_exists(disk.list(&directory))?.unwrap_or_default() {
        // Whoever can have it finds nobody there, and takes it along.
        drop(LockFile::take(disk, &directory.join(&entry.name))?);
    }
    Ok(())
}
