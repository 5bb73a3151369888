//! Room that is given up when the disk is full, so that the records that matter then still fit.

use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};

use crate::file_ops;

const BYTES: u64 = 4 << 20;

pub(super) struct Reserve {
    path: PathBuf,
    kept: bool,
}

impl Reserve {
    pub(super) fn new(path: PathBuf) -> Reserve {
        let mut reserve = Reserve { path, kept: false };
        reserve.allocate();
        reserve
    }

    /// Takes the room, if it is there to be taken.
    pub(super) fn allocate(&mut self) {
        if self.kept {
            return;
        }
        let made = file_ops::create(&self.path)
            .and_then(|file| Ok(fallocate(&file, FallocateFlags::empty(), 0, BYTES)?));
        self.kept = made.is_ok();
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Gives the room up.
    pub(super) fn release(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.kept = false;
    }
}
