//! Putting lines that the write-ahead log has into their logs, many at a time.

use std::collections::BTreeMap;
use std::io;
use std::mem;
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
    /// How long the frames are.
    frames_len: usize,
    /// The first write that nobody has taken.
    next: AtomicUsize,
}

/// From this many logs on the helper thread is worth waking.
const LOGS_FOR_TWO: usize = 128;

/// How many logs a thread takes at a time: whoever comes late gets fewer.
const AT_A_TIME: usize = 64;

impl LogWrites {
    pub(super) fn new(frames: Vec<u8>, capacity: usize) -> LogWrites {
        let (writes, next) = (Vec::with_capacity(capacity), AtomicUsize::new(0));
        LogWrites { writes, frames_len: frames.len(), bytes: frames, next }
    }

    pub(super) fn push(&mut self, write: LogWrite) {
        self.writes.push(write);
    }

    /// Adds lines to one of the last two writes if it is to the same stream, so that appends to one stream that follow each
    /// other go out in one write, also where each of them touches another stream too.
    pub(super) fn extend_last(&mut self, stream: StreamId, lines: &Range<usize>) -> bool {
        let (frames_len, end) = (self.frames_len, self.bytes.len());
        // What was put together, and has something else behind it, would have to be moved as a whole.
        let in_the_way = |write: &LogWrite| write.lines.start >= frames_len && write.lines.end != end;
        if let [.., before, last] = &mut self.writes[..]
            && before.stream == stream
            && !in_the_way(before)
        {
            mem::swap(before, last);
        }
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

#[cfg(test)]
mod tests {
    use rekindle_domain::id::SessionId;

    use super::*;

    /// Hands over lines of streams, named by a letter, and returns what is written: streams, and their lines.
    fn written(order: &str) -> (Vec<String>, usize) {
        let frames: Vec<u8> = (b'0'..=b'9').cycle().take(order.len()).collect();
        let mut writes = LogWrites::new(frames, 0);
        for (at, letter) in order.chars().enumerate() {
            let id: SessionId = format!("sess_0123456789abcdefghjkmnpqr{letter}").parse().expect("an id");
            let (stream, lines) = (StreamId::from(id), at..at + 1);
            if !writes.extend_last(stream, &lines) {
                writes.push(LogWrite { stream, log: None, lines, offset: at as u64 });
            }
        }
        let text = |lines: &[u8]| String::from_utf8(lines.to_vec()).expect("digits");
        let last = |stream: StreamId| stream.as_str().chars().last().expect("a letter");
        let all = writes.each().map(|(write, lines)| format!("{}{}", last(write.stream), text(lines)));
        (all.collect(), writes.bytes.len())
    }

    #[test]
    fn lines_of_one_stream_that_follow_each_other_go_out_together() {
        assert_eq!(written("aaab").0, ["a012", "b3"]);
        // Each append touches a stream of its own, and one that all have in common.
        assert_eq!(written("atbtctdt").0, ["a0", "b2", "c4", "d6", "t1357"]);
        assert_eq!(written("ttat").0, ["a2", "t013"]);
        assert_eq!(written("abcabc").0, ["a0", "b1", "c2", "a3", "b4", "c5"]);
    }

    #[test]
    fn nothing_is_moved_again_and_again() {
        let (all, bytes) = written(&"ab".repeat(500));
        let lines: usize = all.iter().map(|write| write.len() - 1).sum();
        assert!(lines == 1000 && bytes < 4 * 1000, "{bytes} bytes");
    }
}
