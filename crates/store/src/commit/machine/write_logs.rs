//! The lines of a group on their way into their logs: behind the answers, because the write-ahead log has them, and beside the
//! next group where there is one. They are there before anything more is answered.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, mpsc};

use rekindle_domain::id::StreamId;

use super::super::group_commit::StreamLines;
use super::super::log_writes::{LogWrite, LogWrites, Target, Written, open_log};
use super::CommitMachine;
use super::catch_up::mark_lagging;
use crate::lagging::Cause;

/// From this many logs on the helper thread is worth waking, so that the next group need not wait for them.
const LOGS_FOR_HELPER: usize = 8;

/// Lines that the write-ahead log has and their logs do not have yet.
#[derive(Default)]
pub(super) struct UnwrittenLines {
    /// Where each belongs.
    pub(super) lines: Vec<StreamLines>,
    /// The frames that hold them.
    pub(super) frames: Vec<u8>,
}

/// Writes that a helper thread carries out.
pub(super) struct WritesUnderWay {
    writes: Arc<LogWrites>,
    written: mpsc::Receiver<Vec<Written>>,
}

impl CommitMachine {
    /// Has the logs brought up to what the write-ahead log has, by a helper thread if there are enough of them.
    pub(crate) fn begin_log_writes(&mut self) {
        if self.pending.lines.is_empty() {
            return self.poll_log_writes();
        }
        if self.pending.lines.len() < LOGS_FOR_HELPER || self.lagging.len() > 0 {
            return self.finish_log_writes();
        }
        let writes = Arc::new(self.log_writes());
        let (theirs, unwritten, wake) = (writes.clone(), self.unwritten.clone(), self.wake.clone());
        let (sender, written) = mpsc::sync_channel(1);
        self.log_writer.begin(move || {
            let written = theirs.work();
            let all_done = theirs.all_done();
            if all_done {
                // Whoever reads need not wait for the committer too.
                unwritten.finish();
            }
            let _ = sender.send(written);
            if let Some(wake) = wake.filter(|_| !all_done) {
                wake();
            }
        });
        self.under_way = Some(WritesUnderWay { writes, written });
    }

    /// Takes in what a helper thread has written, if it is done.
    fn poll_log_writes(&mut self) {
        match self.under_way.take().map(|under_way| (under_way.written.try_recv(), under_way)) {
            Some((Ok(written), under_way)) => self.take_in_written(under_way.writes, written),
            Some((Err(_), under_way)) => self.under_way = Some(under_way),
            None => {}
        }
    }

    /// Brings the logs up to what the write-ahead log has, together with whoever is at it already.
    ///
    /// # Panics
    /// If a write panicked: then nobody knows what the logs have.
    pub(crate) fn finish_log_writes(&mut self) {
        if let Some(WritesUnderWay { writes, written }) = self.under_way.take() {
            let mut all = writes.work();
            all.extend(written.recv().expect("the thread that writes logs has died"));
            self.take_in_written(writes, all);
        }
        if !self.pending.lines.is_empty() {
            let writes = Arc::new(self.log_writes());
            let written = writes.carry_out(&mut self.helper);
            self.take_in_written(writes, written);
        }
    }

    /// Takes the lines, and says into which logs they go.
    fn log_writes(&mut self) -> LogWrites {
        let UnwrittenLines { lines, frames } = mem::take(&mut self.pending);
        let mut writes = LogWrites::new(self.home.clone(), frames, lines.len());
        // A log may have begun to lag since the lines were encoded.
        let none_lags = self.lagging.len() == 0;
        for StreamLines { stream, range, offset, log } in lines {
            if writes.extend_last(stream, &range) {
                continue;
            }
            let log = match log.filter(|_| none_lags) {
                Some(log) => Target::Open(log),
                None => self.touch(stream, &mut writes),
            };
            writes.push(LogWrite { stream, log, lines: range, offset });
        }
        writes
    }

    /// Says how a log is written to that may not be open. One that an earlier write of the group is to open is opened at once:
    /// it does not matter then which of the two is carried out first.
    fn touch(&mut self, stream: StreamId, writes: &mut LogWrites) -> Target {
        let Some(open) = self.streams.get_mut(stream) else { return Target::Lagging };
        self.touched.insert(stream);
        match (open.touch(), writes.first_of(stream)) {
            (Target::Opening, Some(first)) => {
                let opened = open_log(&self.home, stream, first.offset).map_err(|error| {
                    mark_lagging(&self.lagging, &self.home, open, first.offset, Cause::Write, &error);
                });
                open.opened(opened.ok(), first.offset);
                first.log = open.touch();
                open.touch()
            }
            (target, _) => target,
        }
    }

    /// Takes in what became of the writes: logs that are open from now on, and those that lag.
    fn take_in_written(&mut self, writes: Arc<LogWrites>, written: Vec<Written>) {
        let mut failed = BTreeMap::new();
        for Written { at, opened, outcome } in written {
            let Some(write) = writes.get(at) else { continue };
            if let Target::Closed = write.log
                && let Some(open) = self.streams.get_mut(write.stream)
            {
                open.opened(opened, write.offset);
            }
            failed.extend(outcome.err().map(|error| (at, error)));
        }
        if !failed.is_empty() || self.lagging.len() > 0 {
            // In their order: a log lacks what stands behind the first write that failed, and not what was written before it.
            for (at, (write, lines)) in writes.each().enumerate() {
                if let (Some(error), Some(open)) = (failed.get(&at), self.streams.get_mut(write.stream)) {
                    mark_lagging(&self.lagging, &self.home, open, write.offset, Cause::Write, error);
                }
                // What stands in the file behind a place that could not be written is written again with it.
                self.lagging.extend(write.stream, lines);
            }
        }
        self.frames = writes.into_bytes();
        // Last: whoever reads finds everything in the file, or among what lagging logs lack.
        self.unwritten.finish();
    }
}
