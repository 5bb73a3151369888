//! Lines on their way into their logs: behind the answers, because the write-ahead log has them, many groups of them together, and
//! beside the next ones where there are enough.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, mpsc};

use super::super::log_writes::{LogWrites, StreamLines, Target, Written};
use super::CommitMachine;
use super::catch_up::mark_lagging;
use crate::lagging::Cause;
use crate::unwritten_logs::Batch;

/// From this many lists of lines on the helper thread is worth waking, so that the next group need not wait for them.
const LINES_FOR_HELPER: usize = 8;

/// As much is worth writing while there is something else to do: the larger, the fewer calls for each log.
const WORTH_WRITING: usize = 1 << 20;

/// Most that is on its way: then appends wait for their logs. It bounds memory, and how long a reader waits.
pub(super) const MOST_UNWRITTEN: usize = 4 << 20;

/// Lines that the write-ahead log has and their logs do not have yet.
#[derive(Default)]
pub(super) struct UnwrittenLines {
    /// Where each belongs.
    lines: Vec<StreamLines>,
    /// The frames that hold them.
    frames: Vec<u8>,
}

impl UnwrittenLines {
    /// Adds a group; hands back a buffer for the next one, if there is one.
    pub(super) fn add(&mut self, lines: Vec<StreamLines>, frames: Vec<u8>) -> Option<Vec<u8>> {
        if self.lines.is_empty() {
            (self.lines, self.frames) = (lines, frames);
            return None;
        }
        let shift = self.frames.len();
        self.frames.extend_from_slice(&frames);
        self.lines.extend(lines.into_iter().map(|mut lines| {
            lines.range = lines.range.start + shift..lines.range.end + shift;
            lines
        }));
        Some(frames)
    }

    /// Returns how many bytes they are.
    pub(super) fn size(&self) -> usize {
        self.frames.len()
    }
}

/// Writes that a helper thread carries out.
pub(super) struct WritesUnderWay {
    batch: Batch,
    writes: Arc<LogWrites>,
    written: mpsc::Receiver<Vec<Written>>,
}

impl CommitMachine {
    /// Tells whether any log lacks what was answered, and nobody has begun to write it.
    pub(crate) fn has_unwritten_lines(&self) -> bool {
        !self.pending.lines.is_empty()
    }

    /// Tells whether a helper thread is writing logs; it wakes whoever drives this when it is done.
    pub(crate) fn is_writing_logs(&self) -> bool {
        self.under_way.is_some()
    }

    /// Tells whether the logs should be written although there is something else to do.
    pub(crate) fn are_log_writes_due(&self) -> bool {
        self.has_unwritten_lines() && (self.pending.size() >= WORTH_WRITING || self.unwritten.are_awaited())
    }

    /// Has the logs brought up to what the write-ahead log has, by a helper thread if there are enough of them. If it is still at
    /// what it was given before, that comes first: whoever drives this is woken behind it, and polls.
    pub(crate) fn begin_log_writes(&mut self) {
        if !self.has_unwritten_lines() || self.under_way.is_some() {
            return;
        }
        let Some(wake) = self.wake.clone().filter(|_| self.pending.lines.len() >= LINES_FOR_HELPER) else {
            return self.finish_log_writes();
        };
        let (batch, writes) = self.take_pending();
        let (theirs, unwritten) = (writes.clone(), self.unwritten.clone());
        let (sender, written) = mpsc::sync_channel(1);
        self.log_writer.begin(move || {
            let written = theirs.work();
            if theirs.all_done() {
                // Whoever reads need not wait for the committer too.
                unwritten.finish(batch);
            }
            let _ = sender.send(written);
            wake();
        });
        self.under_way = Some(WritesUnderWay { batch, writes, written });
    }

    /// Takes in what a helper thread has written, if it is done.
    pub(crate) fn poll_log_writes(&mut self) {
        match self.under_way.take().map(|under_way| (under_way.written.try_recv(), under_way)) {
            Some((Ok(written), under_way)) => {
                self.take_in_written(under_way.batch, under_way.writes, written);
            }
            Some((Err(_), under_way)) => self.under_way = Some(under_way),
            None => {}
        }
    }

    /// Brings the logs up to what the write-ahead log has, together with whoever is at it already.
    ///
    /// # Panics
    /// If a write panicked: then nobody knows what the logs have.
    pub(crate) fn finish_log_writes(&mut self) {
        if let Some(WritesUnderWay { batch, writes, written }) = self.under_way.take() {
            let mut all = writes.work();
            all.extend(written.recv().expect("the thread that writes logs has died"));
            self.take_in_written(batch, writes, all);
        }
        if self.has_unwritten_lines() {
            let (batch, writes) = self.take_pending();
            let written = writes.carry_out(&mut self.helper);
            self.take_in_written(batch, writes, written);
        }
    }

    /// Takes the lines, and says how each log is written to.
    fn take_pending(&mut self) -> (Batch, Arc<LogWrites>) {
        let UnwrittenLines { lines, frames } = mem::take(&mut self.pending);
        let streams = &self.streams;
        let target = |stream| streams.get(stream).map_or(Target::Lagging, |open| open.target());
        let writes = LogWrites::new(self.home.clone(), frames, lines, target);
        (self.unwritten.begin(), Arc::new(writes))
    }

    /// Takes in what became of the writes: logs that are open from now on, and those that lag.
    fn take_in_written(&mut self, batch: Batch, writes: Arc<LogWrites>, written: Vec<Written>) {
        let mut failed = BTreeMap::new();
        for Written { at, opened, outcome } in written {
            let Some(write) = writes.get(at) else { continue };
            let open = self.streams.get_mut(write.stream);
            if let (Some(opened), Some(open)) = (opened, open) {
                open.opened(opened, write.offset);
            }
            failed.extend(outcome.err().map(|error| (at, error)));
        }
        if !failed.is_empty() || self.lagging.len() > 0 {
            for (at, (write, lines)) in writes.each().enumerate() {
                if let (Some(error), Some(open)) = (failed.get(&at), self.streams.get_mut(write.stream)) {
                    mark_lagging(&self.lagging, &self.home, open, write.offset, Cause::Write, error);
                }
                self.lagging.extend(write.stream, lines);
            }
        }
        let bytes = writes.into_bytes();
        if self.frames.capacity() == 0 {
            self.frames = bytes;
        }
        // Last: whoever reads finds everything in the file, or among what lagging logs lack.
        self.unwritten.finish(batch);
    }
}
