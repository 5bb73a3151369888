//! Room that is given up when the disk is full, so that the records that matter then still fit.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};

const BYTES: u64 = 4 << 20;

pub(super) struct Reserve {
    path: PathBuf,
    kept: bool,
}

impl Reserve {
    pub(super) fn new(path: PathBuf) -> Reserve {
        let mut reserve = Reserve { path, kept: false };
        reserve.keep();
        reserve
    }

    /// Takes the room, if it is there to be taken.
    pub(super) fn keep(&mut self) {
        if self.kept {
            return;
        }
        let make = || -> std::io::Result<File> {
            let file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
            fallocate(&file, FallocateFlags::empty(), 0, BYTES)?;
            Ok(file)
        };
        match make() {
            Ok(_) => self.kept = true,
            Err(_) => drop(std::fs::remove_file(&self.path)),
        }
    }

    /// Gives the room up.
    pub(super) fn release(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.kept = false;
    }
}
