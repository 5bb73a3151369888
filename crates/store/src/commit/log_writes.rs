//! Putting lines that the write-ahead log has into their logs, many at a time.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rekindle_domain::id::StreamId;

use super::helper_thread::HelperThread;
use crate::disk::{DiskFile, write_all_at};

/// Lines on their way into a stream's log.
pub(super) struct LogWrite {
    pub(super) stream: StreamId,
    /// The log, unless it lags.
    pub(super) log: Option<Arc<dyn DiskFile>>,
    /// Where the lines are among the bytes.
    pub(super) lines: Range<usize>,
    pub(super) offset: u64,
}

/// The writes of one group, which two threads may divide between them.
pub(super) struct LogWrites {
    writes: Vec<LogWrite>,
    /// The frames of the group, which hold the lines; behind them, lines of one stream put together.
    bytes: Vec<u8>,
    /// The first write that nobody has taken.
    next: AtomicUsize,
}

/// From this many logs on the helper thread is worth waking.
const LOGS_FOR_TWO: usize = 128;

/// How many logs a thread takes at a time: whoever comes late gets fewer.
const AT_A_TIME: usize = 64;

impl LogWrites {
    pub(super) fn new(frames: Vec<u8>, capacity: usize) -> LogWrites {
        LogWrites { writes: Vec::with_capacity(capacity), bytes: frames, next: AtomicUsize::new(0) }
    }

    pub(super) fn push(&mut self, write: LogWrite) {
        self.writes.push(write);
    }

    /// Adds lines to the last write if it is to the same stream, so that appends to one stream that
    /// follow each other go out in one write.
    pub(super) fn extend_last(&mut self, stream: StreamId, lines: &Range<usize>) -> bool {
        let Some(last) = self.writes.last_mut().filter(|last| last.stream == stream) else { return false };
        if last.lines.end != self.bytes.len() {
            let start = self.bytes.len();
            self.bytes.extend_from_within(last.lines.clone());
            last.lines.start = start;
        }
        self.bytes.extend_from_within(lines.clone());
        last.lines.end = self.bytes.len();
        true
    }

    /// Writes to all logs, and returns which writes failed and why.
    pub(super) fn carry_out(self: &Arc<LogWrites>, helper: &mut HelperThread) -> BTreeMap<usize, io::Error> {
        let mut failed = BTreeMap::new();
        if self.writes.len() < LOGS_FOR_TWO {
            self.work(&mut failed);
            return failed;
        }
        let theirs = self.clone();
        let pending = helper.begin(move || {
            let mut failed = BTreeMap::new();
            theirs.work(&mut failed);
            failed
        });
        self.work(&mut failed);
        failed.extend(pending.wait());
        failed
    }

    /// Returns the writes, each with its lines, in order.
    pub(super) fn each(&self) -> impl Iterator<Item = (&LogWrite, &[u8])> {
        self.writes.iter().map(|write| (write, &self.bytes[write.lines.clone()]))
    }

    /// Hands the bytes back.
    pub(super) fn into_bytes(self: Arc<LogWrites>) -> Vec<u8> {
        Arc::into_inner(self).map(|writes| writes.bytes).unwrap_or_default()
    }

    /// Writes what nobody else has taken.
    fn work(&self, failed: &mut BTreeMap<usize, io::Error>) {
        loop {
            let from = self.next.fetch_add(AT_A_TIME, Ordering::Relaxed);
            let Some(rest) = self.writes.get(from..).filter(|rest| !rest.is_empty()) else { return };
            for (at, write) in rest.iter().enumerate().take(AT_A_TIME) {
                let Some(log) = &write.log else { continue };
                if let Err(error) = write_all_at(&**log, &self.bytes[write.lines.clone()], write.offset) {
                    failed.insert(from + at, error);
                }
            }
        }
    }
}
