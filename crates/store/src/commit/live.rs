//! One session as the committer has it: its state, its log's descriptor, and how far that log has come.

use std::io;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_domain::token::TokenIndex;

use super::undo::Undo;
use crate::disk::{DiskFile, OpenMode, SharedDisk};
use crate::layout::Layout;

/// What a group adds to one log.
pub(super) enum Lines<'a> {
    /// One append's lines, where the group has them.
    Lone(&'a [u8]),
    /// The lines of several appends.
    Gathered(Vec<u8>),
}

impl Lines<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Lines::Lone(lines) => lines,
            Lines::Gathered(lines) => lines,
        }
    }
}

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
    /// Appends of the group that is being committed whose lines are still to come.
    expected: usize,
    /// Lines of that group that came already.
    gathered: Vec<u8>,
    /// The log could not be written; it is served from the write-ahead log until it is rewritten.
    behind: bool,
}

impl Live {
    pub(super) fn new(state: SessionState, tokens: TokenIndex, damaged_at: Option<u64>) -> Live {
        Live {
            state,
            tokens,
            damaged_at,
            log: None,
            touched: false,
            undo: None,
            expected: 0,
            gathered: Vec::new(),
            behind: false,
        }
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

    /// Counts an append of the group that is being prepared.
    pub(super) fn expect_lines(&mut self) {
        self.expected += 1;
    }

    /// The group was taken back: nothing of it will be written.
    pub(super) fn expect_none(&mut self) {
        self.expected = 0;
        self.gathered.clear();
    }

    /// Takes in lines of the group that the write-ahead log has now. With the last of them returns what is to
    /// be written to the log, in one write, and where.
    pub(super) fn take_lines<'a>(&mut self, lines: &'a [u8], offset: u64) -> Option<(Lines<'a>, u64)> {
        self.touched = true;
        self.undo = None;
        self.expected = self.expected.saturating_sub(1);
        if self.expected == 0 && self.gathered.is_empty() {
            return Some((Lines::Lone(lines), offset));
        }
        self.gathered.extend_from_slice(lines);
        let gathered = (self.expected == 0).then(|| std::mem::take(&mut self.gathered))?;
        let start = offset + lines.len() as u64 - gathered.len() as u64;
        Some((Lines::Gathered(gathered), start))
    }

    /// Opens the log if it is to be written at `end`; one that cannot be is behind, and loses nothing: the
    /// write-ahead log keeps the lines until the log has them.
    pub(super) fn make_ready(&mut self, disk: &SharedDisk, layout: &Layout, end: u64) {
        if !self.behind && self.open(disk, layout, end).is_err() {
            self.behind = true;
        }
    }

    /// Returns the log to write to, unless it is behind.
    pub(super) fn writable(&self) -> Option<&dyn DiskFile> {
        self.log.as_deref().filter(|_| !self.behind)
    }

    /// The log could not be written.
    pub(super) fn fall_behind(&mut self) {
        self.behind = true;
    }

    /// Opens the log where its end is: one that is missing or has another length is not written to blindly.
    fn open(&mut self, disk: &SharedDisk, layout: &Layout, end: u64) -> io::Result<()> {
        if self.log.is_none() {
            let mode = if end == 0 { OpenMode::Create } else { OpenMode::Write };
            let log = disk.open(&layout.log(self.id()), mode)?;
            if log.stat()?.len != end {
                return Err(io::Error::other("the log was changed by someone else"));
            }
            self.log = Some(log);
        }
        Ok(())
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
