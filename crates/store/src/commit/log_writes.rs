//! Putting lines that the write-ahead log has into their logs, many at a time, and beside the next group.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rekindle_domain::id::StreamId;

use super::helper_thread::HelperThread;
use crate::disk::{DiskFile, OpenMode, write_all_at};
use crate::home_files::HomeFiles;

/// A log that lines are written into.
pub(super) enum Target {
    /// It is open.
    Open(Arc<dyn DiskFile>),
    /// It is to be opened for its first write since a checkpoint, where the lines belong.
    Closed,
    /// It is to be opened for an earlier write.
    Opening,
    /// It lags: the lines are kept in memory.
    Lagging,
}

/// Lines on their way into a stream's log.
pub(super) struct LogWrite {
    pub(super) stream: StreamId,
    pub(super) log: Target,
    /// Where the lines are among the bytes.
    pub(super) lines: Range<usize>,
    pub(super) offset: u64,
}

/// What became of a write.
pub(super) struct Written {
    /// Which of the writes it was.
    pub(super) at: usize,
    /// The log, if it was opened for it.
    pub(super) opened: Option<Arc<dyn DiskFile>>,
    pub(super) outcome: io::Result<()>,
}

/// The writes of one group, which two threads may divide between them.
pub(super) struct LogWrites {
    home: HomeFiles,
    writes: Vec<LogWrite>,
    /// The frames of the group, which hold the lines; behind them, lines of one stream put together.
    bytes: Vec<u8>,
    /// How long the frames are.
    frames_len: usize,
    /// The first write that nobody has taken.
    next: AtomicUsize,
    /// How many of them the logs have.
    done: AtomicUsize,
}

/// From this many logs on the helper thread is worth waking.
const LOGS_FOR_TWO: usize = 128;

/// How many logs a thread takes at a time: whoever comes late gets fewer.
const AT_A_TIME: usize = 64;

impl LogWrites {
    pub(super) fn new(home: HomeFiles, frames: Vec<u8>, capacity: usize) -> LogWrites {
        let (writes, next, done) = (Vec::with_capacity(capacity), AtomicUsize::new(0), AtomicUsize::new(0));
        LogWrites { home, writes, frames_len: frames.len(), bytes: frames, next, done }
    }

    pub(super) fn push(&mut self, write: LogWrite) {
        self.writes.push(write);
    }

    /// Returns the first write to a stream.
    pub(super) fn first_of(&mut self, stream: StreamId) -> Option<&mut LogWrite> {
        self.writes.iter_mut().find(|write| write.stream == stream)
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

    /// Writes to all logs, and returns what is to be known of it.
    pub(super) fn carry_out(self: &Arc<LogWrites>, helper: &mut HelperThread) -> Vec<Written> {
        if self.writes.len() < LOGS_FOR_TWO {
            return self.work();
        }
        let theirs = self.clone();
        let pending = helper.begin(move || theirs.work());
        let mut written = self.work();
        written.extend(pending.wait());
        written
    }

    /// Returns the writes, each with its lines, in order.
    pub(super) fn each(&self) -> impl Iterator<Item = (&LogWrite, &[u8])> {
        self.writes.iter().map(|write| (write, &self.bytes[write.lines.clone()]))
    }

    /// Returns one of them.
    pub(super) fn get(&self, at: usize) -> Option<&LogWrite> {
        self.writes.get(at)
    }

    /// Hands the bytes back.
    pub(super) fn into_bytes(self: Arc<LogWrites>) -> Vec<u8> {
        Arc::into_inner(self).map(|writes| writes.bytes).unwrap_or_default()
    }

    /// Writes what nobody else has taken; returns which logs were opened, and which writes failed.
    pub(super) fn work(&self) -> Vec<Written> {
        let mut written = Vec::new();
        loop {
            let from = self.next.fetch_add(AT_A_TIME, Ordering::Relaxed);
            let Some(rest) = self.writes.get(from..).filter(|rest| !rest.is_empty()) else { return written };
            for (at, write) in rest.iter().enumerate().take(AT_A_TIME) {
                let (outcome, opened) = self.write(write);
                self.done.fetch_add(usize::from(outcome.is_ok()), Ordering::Release);
                if matches!(write.log, Target::Closed) || outcome.is_err() {
                    written.push(Written { at: from + at, opened, outcome });
                }
            }
        }
    }

    /// Tells whether the logs have everything: not if a write failed.
    pub(super) fn all_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.writes.len()
    }

    fn write(&self, write: &LogWrite) -> (io::Result<()>, Option<Arc<dyn DiskFile>>) {
        let lines = &self.bytes[write.lines.clone()];
        match &write.log {
            Target::Lagging | Target::Opening => (Ok(()), None),
            Target::Open(log) => (write_all_at(&**log, lines, write.offset), None),
            Target::Closed => match open_log(&self.home, write.stream, write.offset) {
                Ok(log) => (write_all_at(&*log, lines, write.offset), Some(log)),
                Err(error) => (Err(error), None),
            },
        }
    }
}

/// Opens a log where its end is: one that is missing or has another length is not written to blindly. One that cannot be opened
/// lags, and loses nothing: the write-ahead log keeps the lines until the log has them.
pub(super) fn open_log(home: &HomeFiles, stream: StreamId, end: u64) -> io::Result<Arc<dyn DiskFile>> {
    let mode = if end == 0 { OpenMode::Create } else { OpenMode::Write };
    let log = home.disk.open(&home.stream_log(stream), mode)?;
    if log.len_at_open()? != end {
        return Err(io::Error::other("the log was changed by someone else"));
    }
    Ok(log.into())
}

#[cfg(test)]
mod tests {
    use rekindle_domain::id::SessionId;

    use super::*;
    use crate::disk::RealDisk;
    use crate::layout::Layout;

    /// Hands over lines of streams, named by a letter, and returns what is written: streams, and their lines.
    fn written(order: &str) -> (Vec<String>, usize) {
        let frames: Vec<u8> = (b'0'..=b'9').cycle().take(order.len()).collect();
        let home = HomeFiles::new(Arc::new(RealDisk), Layout::new("/nowhere"));
        let mut writes = LogWrites::new(home, frames, 0);
        for (at, letter) in order.chars().enumerate() {
            let id: SessionId = format!("sess_0123456789abcdefghjkmnpqr{letter}").parse().expect("an id");
            let (stream, lines) = (StreamId::from(id), at..at + 1);
            if !writes.extend_last(stream, &lines) {
                writes.push(LogWrite { stream, log: Target::Lagging, lines, offset: at as u64 });
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
