//! The file of the outbox: lines are added at its end, a step in one write, and now and then it is written anew with what still counts.
//!
//! Nothing waits for the disk: what a power cut takes from the end is found again in the logs, whose records it was made from, or
//! delivered once more. A disk that is full keeps nobody from being told; what could not be written is written when there is room.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_notify::outbox::{Entry, Outbox};
use rekindle_store::disk::{
    Disk, DiskFile, OpenMode, SharedDisk, if_exists, read_up_to, replace, write_all_at,
};

use crate::error::chain;

/// What is read at once.
const CHUNK: usize = 64 << 10;

/// The longest line that is one of ours: a step has some hundreds of notices at most.
const LONGEST_LINE: usize = 4 << 20;

/// Beyond this a file is written anew, once it is much longer than it was then.
const LARGE: u64 = 1 << 20;

/// What may wait to be written. Beyond it nothing more is looked at: the logs keep it.
const MOST_UNWRITTEN: usize = 1 << 20;

/// Why an outbox cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct OutboxError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Reads an outbox as it is on disk; one that is not there is empty.
pub fn read_outbox(disk: &dyn Disk, path: &Path) -> Result<Outbox, OutboxError> {
    read(disk, path).map(|(outbox, _)| outbox).map_err(|source| OutboxError { path: path.to_owned(), source })
}

/// Reads an outbox, and where its last good line ends. What a crash left behind that never counted.
fn read(disk: &dyn Disk, path: &Path) -> io::Result<(Outbox, u64)> {
    let (mut outbox, mut good) = (Outbox::default(), 0);
    let Some(file) = if_exists(disk.open(path, OpenMode::Read))? else { return Ok((outbox, good)) };
    let (mut buffer, mut rest, mut at) = (vec![0; CHUNK], Vec::new(), 0);
    loop {
        let read = read_up_to(&*file, &mut buffer, at)?;
        at += read as u64;
        rest.extend_from_slice(&buffer[..read]);
        let mut begin = 0;
        while let Some(len) = memchr::memchr(b'\n', &rest[begin..]) {
            let line = &rest[begin..begin + len];
            match serde_json::from_slice::<Entry>(line) {
                Ok(entry) => outbox.apply(entry),
                // Another version knows more kinds of entries; what is no JSON is damage, and nothing behind it counts.
                Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok() => {}
                Err(_) => return Ok((outbox, good)),
            }
            (begin, good) = (begin + len + 1, good + len as u64 + 1);
        }
        rest.drain(..begin);
        if read < CHUNK || rest.len() > LONGEST_LINE {
            return Ok((outbox, good));
        }
    }
}

/// The file, as whoever adds to it has it.
pub(super) struct OutboxFile {
    disk: SharedDisk,
    path: PathBuf,
    file: Option<Box<dyn DiskFile>>,
    len: u64,
    /// How long it was when it was last written anew.
    fresh_len: u64,
    /// Lines that are still to be written.
    unwritten: Vec<u8>,
    failing: bool,
}

impl OutboxFile {
    /// Returns the file of an outbox. Nothing is read or made yet.
    pub(super) fn new(disk: SharedDisk, path: PathBuf) -> OutboxFile {
        OutboxFile { disk, path, file: None, len: 0, fresh_len: 0, unwritten: Vec::new(), failing: false }
    }

    /// Reads what is there.
    pub(super) fn load(&mut self) -> Result<Outbox, OutboxError> {
        let read = read(&*self.disk, &self.path);
        let (outbox, good) = read.map_err(|source| OutboxError { path: self.path.clone(), source })?;
        (self.len, self.file) = (good, None);
        Ok(outbox)
    }

    /// Tells whether so much is still to be written that nothing may be added.
    pub(super) fn is_full(&self) -> bool {
        self.unwritten.len() > MOST_UNWRITTEN
    }

    /// Adds lines, in one write. What cannot be written now is written with the next.
    pub(super) fn add(&mut self, entries: &[Entry]) {
        entries.iter().for_each(|entry| write_line(&mut self.unwritten, entry));
        self.flush();
    }

    /// Writes what is still to be written.
    pub(super) fn flush(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        match self.write() {
            Ok(()) => {
                self.len += self.unwritten.len() as u64;
                self.unwritten.clear();
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the outbox of notifications can be written again");
                }
            }
            Err(error) => {
                // Half a step must not stay: what follows would be behind what is no line.
                if let Some(file) = self.file.take() {
                    let _ = file.set_len(self.len);
                }
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!("the outbox of notifications cannot be written at the moment: {error}");
                }
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            if let Some(parent) = self.path.parent() {
                self.disk.create_dir(parent)?;
            }
            let file = self.disk.open(&self.path, OpenMode::Create)?;
            // What is behind the last good line never counted.
            if file.stat()?.len != self.len {
                file.set_len(self.len)?;
            }
            self.file = Some(file);
        }
        match &self.file {
            Some(file) => write_all_at(&**file, &self.unwritten, self.len),
            None => Ok(()),
        }
    }

    /// Tells whether the file has grown so much that it is to be written anew.
    pub(super) fn is_large(&self) -> bool {
        self.len > LARGE.max(self.fresh_len.saturating_mul(2)) && !self.failing
    }

    /// Writes the file anew, with what still counts.
    pub(super) fn write_anew(&mut self, outbox: &Outbox) {
        let mut bytes = Vec::new();
        outbox.entries().for_each(|entry| write_line(&mut bytes, &entry));
        self.file = None;
        // What is on disk is as good, only longer.
        if let Err(error) = replace(&*self.disk, &self.path, &bytes) {
            self.fresh_len = self.len;
            tracing::warn!("the outbox of notifications cannot be rewritten: {}", chain(&error));
            return;
        }
        self.unwritten.clear();
        (self.len, self.fresh_len) = (bytes.len() as u64, bytes.len() as u64);
    }
}

fn write_line(bytes: &mut Vec<u8>, entry: &Entry) {
    let before = bytes.len();
    match serde_json::to_writer(&mut *bytes, entry) {
        Ok(()) => bytes.push(b'\n'),
        // An entry has nothing in it that is no JSON.
        Err(_) => bytes.truncate(before),
    }
}
