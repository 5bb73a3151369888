//! The agent's standard error: always read, kept in two files that take turns, so that it is bounded and its end
//! is always there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::dir::HolderDir;
use crate::file_ops;

/// How much of the end goes into the exit note.
const TAIL: u64 = 16 << 10;

pub(super) struct StderrLog {
    dir: HolderDir,
    file: Option<File>,
    index: usize,
    written: u64,
    most: u64,
}

impl StderrLog {
    pub(super) fn new(dir: HolderDir, most: u64) -> StderrLog {
        StderrLog { dir, file: None, index: 0, written: 0, most }
    }

    /// Keeps what fits. A full disk loses some of it rather than stopping the agent: it is no part of the
    /// conversation.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.file.is_none() || self.written >= self.most {
            self.index += usize::from(self.file.is_some());
            self.written = 0;
            self.file = file_ops::create(&self.dir.stderr(self.index)).ok();
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(bytes);
            self.written += bytes.len() as u64;
        }
    }

    /// Returns the end of it as text.
    pub(super) fn tail(&self) -> String {
        let mut bytes = Vec::new();
        if self.index > 0 && self.written < TAIL {
            let _ = read_tail(&self.dir, self.index - 1, TAIL - self.written, &mut bytes);
        }
        let _ = read_tail(&self.dir, self.index, TAIL, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn read_tail(dir: &HolderDir, index: usize, most: u64, into: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(dir.stderr(index))?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
    file.take(most).read_to_end(into)?;
    Ok(())
}
