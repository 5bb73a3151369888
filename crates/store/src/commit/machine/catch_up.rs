//! Lagging logs, brought up to date: what could not be written is kept in memory, and written when that can be done,
//! without a restart and without anybody asking for it.

use std::io;
use std::sync::Arc;

use rekindle_domain::id::StreamId;

use super::super::open_stream::OpenStream;
use super::super::rewrite;
use super::CommitMachine;
use crate::disk::{DiskFile, is_shortage};
use crate::lagging::{Cause, Lag, LaggingLogs};
use crate::layout::Layout;
use crate::wal::scan;

/// Ticks after which a log that needs the whole write-ahead log read is tried again, at most.
const MOST_PATIENCE: u32 = 8;

/// Marks a log as lagging from a place on: from there on what belongs to it is kept in memory.
pub(super) fn mark_lagging(
    lagging: &LaggingLogs,
    layout: &Layout,
    open: &mut OpenStream,
    keep: u64,
    cause: Cause,
    error: &io::Error,
) {
    open.mark_lagging();
    let (path, file, lines) = (layout.stream_log(open.stream), open.log.clone(), Arc::default());
    lagging.add(open.stream, Lag { path, keep, lines, file, cause, why: error.to_string() });
}

impl CommitMachine {
    /// Brings the lagging logs up to date, as far as that can be done. Those that need the whole write-ahead log read
    /// are tried less and less often, unless it is `due`.
    pub(super) fn catch_up(&mut self, due: bool) {
        let mut rest = Vec::new();
        for stream in self.lagging.streams() {
            let Some(lag) = self.lagging.get(stream) else { continue };
            if lag.cause != Cause::Write {
                rest.push((stream, lag));
                continue;
            }
            match rewrite::in_place(&self.home, stream, &lag) {
                Ok(log) => self.caught_up(stream, Some(log)),
                Err(error) => {
                    self.lagging.set_error(stream, &error);
                    // A new file would need more of what is lacking.
                    if !is_shortage(&error) {
                        rest.push((stream, lag));
                    }
                }
            }
        }
        if rest.is_empty() {
            return;
        }
        if self.patience.0 > 0 && !due {
            self.patience.0 -= 1;
            return;
        }
        if self.catch_up_from_wal(rest) {
            self.patience = (0, 1);
        } else {
            let longer = (self.patience.1 * 2).min(MOST_PATIENCE);
            self.patience = (longer, longer);
        }
    }

    /// Brings logs up to date with the help of the write-ahead log; tells whether all are.
    fn catch_up_from_wal(&mut self, rest: Vec<(StreamId, Lag)>) -> bool {
        // What is read back must be what is on disk.
        let scanned = self.sync().map_err(io::Error::other);
        let scanned = scanned.and_then(|()| scan::scan(&self.home).map_err(io::Error::other));
        let scan = match scanned {
            Ok(scan) => scan,
            Err(error) => {
                rest.iter().for_each(|(stream, _)| self.lagging.set_error(*stream, &error));
                return false;
            }
        };
        let (mut all, mut tails) = (true, scan.by_stream());
        for (stream, lag) in rest {
            let tail = tails.remove(&stream).unwrap_or_default();
            let done = match lag.cause {
                Cause::Recovery => rewrite::redo_late(&self.home, stream, &tail).map(|()| None),
                Cause::Write | Cause::Sync => rewrite::rewrite(&self.home, stream, &lag, &tail).map(Some),
            };
            match done {
                Ok(log) => self.caught_up(stream, log),
                Err(error) => {
                    self.lagging.set_error(stream, &error);
                    all = false;
                }
            }
        }
        all
    }

    fn caught_up(&mut self, stream: StreamId, log: Option<Arc<dyn DiskFile>>) {
        if let Some(open) = self.streams.get_mut(stream) {
            open.caught_up(log);
        }
        // Last: whoever reads finds everything in the file, or here.
        self.lagging.remove(stream);
    }
}
