//! Room kept aside for the records that end work: a full disk must not make a cancel or a deletion fail.

use std::path::PathBuf;

use crate::disk::{OpenMode, SharedDisk};

/// The file that takes up the room.
pub(crate) struct Reserve {
    disk: SharedDisk,
    path: PathBuf,
    size: u64,
    kept: bool,
}

impl Reserve {
    pub(crate) fn new(disk: SharedDisk, path: PathBuf, size: u64) -> Reserve {
        Reserve { disk, path, size, kept: false }
    }

    /// Tells whether the room is there to be given up.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Takes the room again if there is any.
    pub(crate) fn refill(&mut self) {
        if self.kept {
            return;
        }
        let file = self.disk.open(&self.path, OpenMode::Create);
        let allocated = file
            .and_then(|file| if file.stat()?.len == self.size { Ok(()) } else { file.allocate(self.size) });
        self.kept = allocated.is_ok();
        if !self.kept {
            self.release();
        }
    }

    /// Gives the room up.
    pub(crate) fn release(&mut self) {
        self.kept = false;
        let _ = self.disk.remove_file(&self.path);
    }
}
