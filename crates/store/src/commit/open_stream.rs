//! One stream as the committer has it: its fold, its log's descriptor, and how far that log has come.

use std::io;
use std::mem;
use std::sync::Arc;

use rekindle_domain::id::StreamId;
use rekindle_domain::session::Position;

use super::Committed;
use super::background_sync::LogSync;
use super::erased_fold::{Folded, OpenFold};
use crate::disk::{DiskFile, OpenMode};
use crate::fold::Fold;
use crate::home_files::HomeFiles;
use crate::log::Damage;

/// A stream that can be appended to.
pub(crate) struct OpenStream {
    pub(super) stream: StreamId,
    pub(super) fold: Box<dyn OpenFold>,
    /// Where the log is damaged; then nothing may be appended.
    pub(super) damage: Option<Arc<Damage>>,
    /// The log, open from its first write to the next checkpoint: a descriptor opened later would not be
    /// told of a failed write-back.
    pub(super) log: Option<Arc<dyn DiskFile>>,
    /// The log has bytes that no checkpoint covers, or is about to.
    pub(super) touched: bool,
    /// Something was written to the log that no sync has covered, also none that is under way, or is about to be.
    pub(super) unsynced: bool,
    /// How far the log was when it was last synced, or opened.
    synced_to: u64,
    /// The log could not be written; what it lacks is served from memory until it has everything.
    lagging: bool,
}

impl OpenStream {
    pub(crate) fn new<F: Fold>(fold: F, damage: Option<Damage>) -> OpenStream {
        let (stream, damage) = (fold.stream(), damage.map(Arc::new));
        let fold = Box::new(Folded::new(fold));
        let (touched, unsynced, lagging) = (false, false, false);
        OpenStream { stream, fold, damage, log: None, touched, unsynced, synced_to: 0, lagging }
    }

    pub(super) fn position(&self) -> Position {
        self.fold.position()
    }

    /// Returns the stream for others to look at, if its fold is of this type.
    pub(super) fn committed<F: Fold>(&self) -> Option<Committed<F>> {
        let fold = self.fold.as_any().downcast_ref::<F>()?.clone();
        Some(Committed { fold, damage: self.damage.clone() })
    }

    /// Returns the log if it is open and can be written to.
    pub(super) fn open_log(&self) -> Option<Arc<dyn DiskFile>> {
        self.log.clone().filter(|_| !self.lagging)
    }

    /// Opens the log for its first write since a checkpoint, at its end. One that cannot be lags, and
    /// loses nothing: the write-ahead log keeps the lines until the log has them. One that lags stays closed.
    pub(super) fn touch(&mut self, home: &HomeFiles, end: u64) -> io::Result<Option<Arc<dyn DiskFile>>> {
        (self.touched, self.unsynced) = (true, true);
        if !self.lagging {
            self.open(home, end)?;
        }
        Ok(self.open_log())
    }

    /// The log could not be written. It counts as touched: no checkpoint covers what it lacks.
    pub(super) fn mark_lagging(&mut self) {
        (self.lagging, self.touched) = (true, true);
    }

    /// Opens the log where its end is: one that is missing or has another length is not written to blindly.
    fn open(&mut self, home: &HomeFiles, end: u64) -> io::Result<()> {
        if self.log.is_none() {
            let mode = if end == 0 { OpenMode::Create } else { OpenMode::Write };
            let log = home.disk.open(&home.stream_log(self.stream), mode)?;
            if log.len_at_open()? != end {
                return Err(io::Error::other("the log was changed by someone else"));
            }
            (self.log, self.synced_to) = (Some(log.into()), end);
        }
        Ok(())
    }

    /// Returns the log to be synced, unless nothing was written to it since it was last: whoever takes it reports a failure.
    pub(super) fn begin_sync(&mut self) -> Option<LogSync> {
        let log = self.open_log().filter(|_| self.unsynced)?;
        self.unsynced = false;
        let end = self.position().log_offset;
        let start = mem::replace(&mut self.synced_to, end);
        Some(LogSync { stream: self.stream, log, new: start..end })
    }

    /// The log has everything; it is open, or will be opened for its next write.
    pub(super) fn caught_up(&mut self, log: Option<Arc<dyn DiskFile>>) {
        self.log = log;
        (self.lagging, self.unsynced, self.synced_to) = (false, true, 0);
    }

    /// A checkpoint covers the log: its descriptor has nothing more to tell.
    pub(super) fn checkpointed(&mut self) {
        self.log = None;
        (self.touched, self.unsynced) = (false, false);
    }
}
