//! The disk reserve: room kept for the records that end work. A full disk must not make a cancel or a deletion fail.

use std::path::PathBuf;

use crate::disk::{OpenMode, SharedDisk};

/// The file that takes up the room.
pub(crate) struct Reserve {
    disk: SharedDisk,
    path: PathBuf,
    size: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The room is there to be given up.
    Kept,
    /// It was given up: what it freed is for the most urgent records alone.
    Released,
    /// It could not be had in the first place.
    Absent,
}

impl Reserve {
    pub(crate) fn new(disk: SharedDisk, path: PathBuf, size: u64) -> Reserve {
        Reserve { disk, path, size, state: State::Absent }
    }

    /// Tells whether the room is there to be given up.
    pub(crate) fn is_kept(&self) -> bool {
        self.state == State::Kept
    }

    /// Tells whether the room was given up and has not come back.
    pub(crate) fn is_released(&self) -> bool {
        self.state == State::Released
    }

    /// Takes the room again if there is any.
    pub(crate) fn refill(&mut self) {
        if self.is_kept() {
            return;
        }
        let file = self.disk.open(&self.path, OpenMode::Create);
        let allocated = file
            .and_then(|file| if file.stat()?.len == self.size { Ok(()) } else { file.allocate(self.size) });
        if allocated.is_ok() {
            self.state = State::Kept;
        } else {
            let _ = self.disk.remove_file(&self.path);
        }
    }

    /// Gives the room up.
    pub(crate) fn release(&mut self) {
        self.state = State::Released;
        let _ = self.disk.remove_file(&self.path);
    }
}
