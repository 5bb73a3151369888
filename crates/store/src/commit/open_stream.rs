//! One stream as the committer has it: its fold, its log's descriptor, and how far that log has come.

use std::mem;
use std::sync::Arc;

use rekindle_domain::id::StreamId;
use rekindle_domain::session::Position;

use super::Committed;
use super::background_sync::LogSync;
use super::erased_fold::{Folded, OpenFold};
use super::log_writes::Target;
use crate::disk::DiskFile;
use crate::fold::Fold;
use crate::log::{Damage, LogForm};

/// A stream that can be appended to.
pub(crate) struct OpenStream {
    pub(super) stream: StreamId,
    pub(super) fold: Box<dyn OpenFold>,
    /// Where the log is damaged; then nothing may be appended.
    pub(super) damage: Option<Arc<Damage>>,
    /// How the log is kept: nothing is appended to one that is compressed.
    pub(super) form: LogForm,
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
    pub(crate) fn new<F: Fold>(fold: F, damage: Option<Damage>, form: LogForm) -> OpenStream {
        let (stream, damage) = (fold.stream(), damage.map(Arc::new));
        let fold = Box::new(Folded::new(fold));
        let (touched, unsynced, lagging) = (false, false, false);
        OpenStream { stream, fold, damage, form, log: None, touched, unsynced, synced_to: 0, lagging }
    }

    pub(super) fn position(&self) -> Position {
        self.fold.position()
    }

    /// Returns the stream for others to look at, if its fold is of this type.
    pub(super) fn committed<F: Fold>(&self) -> Option<Committed<F>> {
        let fold = self.fold.as_any().downcast_ref::<F>()?.clone();
        Some(Committed { fold, damage: self.damage.clone() })
    }

    /// Says how the log is written to: one that is closed is opened for its first write since a checkpoint, one that lags stays
    /// closed.
    pub(super) fn target(&self) -> Target {
        match &self.log {
            _ if self.lagging => Target::Lagging,
            Some(log) => Target::Open(log.clone()),
            None => Target::Closed,
        }
    }

    /// The log was opened, and was that long.
    pub(super) fn opened(&mut self, log: Arc<dyn DiskFile>, end: u64) {
        (self.log, self.synced_to) = (Some(log), end);
    }

    /// The log could not be written. It counts as touched: no checkpoint covers what it lacks.
    pub(super) fn mark_lagging(&mut self) {
        (self.lagging, self.touched) = (true, true);
    }

    /// Returns the log to be synced, unless nothing was written to it since it was last: whoever takes it reports a failure.
    pub(super) fn begin_sync(&mut self) -> Option<LogSync> {
        let log = self.log.clone().filter(|_| self.unsynced && !self.lagging)?;
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
