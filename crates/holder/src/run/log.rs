//! What a holder has to say for itself: a few lines in a bounded file, for people who look into its directory.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::stamp::Stamp;

/// Longest the file becomes.
const MOST: u64 = 64 << 10;

pub(super) struct Log {
    file: Option<File>,
    written: u64,
}

impl Log {
    /// A holder without a log is as good a holder.
    pub(super) fn open(path: &Path) -> Log {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok();
        Log { file, written: 0 }
    }

    pub(super) fn write_line(&mut self, text: &str) {
        let line = format!("{} {text}\n", Stamp::now());
        self.written += line.len() as u64;
        if self.written <= MOST
            && let Some(file) = &mut self.file
        {
            let _ = file.write_all(line.as_bytes());
        }
    }
}
