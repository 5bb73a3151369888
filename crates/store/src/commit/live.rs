//! One session as the committer has it: its state, its log's descriptor, and how far that log has come.

use std::io;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_domain::token::TokenIndex;

use super::undo::Undo;
use crate::disk::{DiskFile, OpenMode, SharedDisk, write_all_at};
use crate::layout::Layout;

/// A session that can be appended to.
pub(super) struct Live {
    pub(super) state: SessionState,
    pub(super) tokens: TokenIndex,
    /// Where the log is damaged; then nothing may be appended.
    pub(super) damaged_at: Option<u64>,
    /// The log, open from its first write to the next checkpoint: a descriptor opened later would not be
    /// told of a failed write-back.
    log: Option<Box<dyn DiskFile>>,
    /// The log has bytes that no checkpoint covers, or is about to.
    touched: bool,
    /// What the session was before the group that is being committed.
    pub(super) undo: Option<Undo>,
    /// The log could not be written; it is served from the write-ahead log until it is rewritten.
    behind: bool,
}

impl Live {
    pub(super) fn new(state: SessionState, tokens: TokenIndex, damaged_at: Option<u64>) -> Live {
        Live { state, tokens, damaged_at, undo: None, log: None, touched: false, behind: false }
    }

    pub(super) fn id(&self) -> SessionId {
        self.state.id
    }

    pub(super) fn is_touched(&self) -> bool {
        self.touched
    }

    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Writes lines that the write-ahead log already has. A failure leaves the log behind, which loses
    /// nothing: the write-ahead log keeps the lines until the log has them.
    pub(super) fn write(&mut self, disk: &SharedDisk, layout: &Layout, lines: &[u8], offset: u64) {
        self.touched = true;
        if self.behind {
            return;
        }
        let written = self.open(disk, layout, offset).and_then(|log| write_all_at(log, lines, offset));
        self.behind = written.is_err();
    }

    /// Opens the log where its end is: one that is missing or has another length is not written to blindly.
    fn open(&mut self, disk: &SharedDisk, layout: &Layout, end: u64) -> io::Result<&dyn DiskFile> {
        if self.log.is_none() {
            let mode = if end == 0 { OpenMode::Create } else { OpenMode::Write };
            let log = disk.open(&layout.log(self.id()), mode)?;
            if log.stat()?.len != end {
                return Err(io::Error::other("the log was changed by someone else"));
            }
            self.log = Some(log);
        }
        match &self.log {
            Some(log) => Ok(&**log),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Makes the log durable; one that cannot be, or whose name leads elsewhere by now, is behind.
    pub(super) fn sync(&mut self, disk: &SharedDisk, layout: &Layout) {
        let Some(log) = &self.log else { return };
        let identity = log.sync().and_then(|()| log.stat()).map(|stat| stat.identity);
        let named = disk.stat(&layout.log(self.state.id)).map(|stat| stat.identity);
        self.behind |= identity.is_err() || identity.ok() != named.ok();
    }

    /// Returns the log as it was opened, whatever its name leads to.
    pub(super) fn log(&self) -> Option<&dyn DiskFile> {
        self.log.as_deref()
    }

    /// Takes a rewritten log in place of one that was behind.
    pub(super) fn caught_up(&mut self, log: Box<dyn DiskFile>) {
        self.log = Some(log);
        self.behind = false;
    }

    /// A checkpoint covers the log: its descriptor has nothing more to tell.
    pub(super) fn checkpointed(&mut self) {
        self.log = None;
        self.touched = false;
    }
}
