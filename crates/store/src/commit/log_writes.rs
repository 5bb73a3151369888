//! Putting lines that the write-ahead log has into their logs, many at a time, and beside the next group.

use std::io;
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
    /// It lags: the lines are kept in memory.
    Lagging,
}

/// Lines that one append adds to one log.
#[derive(Clone)]
pub(super) struct StreamLines {
    pub(super) stream: StreamId,
    /// Where they are among the bytes that hold them.
    pub(super) range: Range<usize>,
    /// Where they belong in the stream's log.
    pub(super) offset: u64,
}

/// Lines on their way into a stream's log: all that are written to it at a time.
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

/// Writes to logs, one to each, which two threads may divide between them.
pub(super) struct LogWrites {
    home: HomeFiles,
    writes: Vec<LogWrite>,
    /// The frames that hold the lines; behind them, lines of one stream put together.
    bytes: Vec<u8>,
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
    /// Puts together what goes into each log; `target` says how it is written to.
    pub(super) fn new(
        home: HomeFiles,
        mut bytes: Vec<u8>,
        mut lines: Vec<StreamLines>,
        mut target: impl FnMut(StreamId) -> Target,
    ) -> LogWrites {
        // Those of one stream stay in their order.
        lines.sort_by_key(|lines| lines.stream);
        let write = |of_one: &[StreamLines]| {
            let StreamLines { stream, range, offset } = of_one[0].clone();
            let lines = match of_one {
                [_] => range,
                several => {
                    let start = bytes.len();
                    several.iter().for_each(|lines| bytes.extend_from_within(lines.range.clone()));
                    start..bytes.len()
                }
            };
            LogWrite { stream, log: target(stream), lines, offset }
        };
        let writes = lines.chunk_by(|one, next| one.stream == next.stream).map(write).collect();
        LogWrites { home, writes, bytes, next: AtomicUsize::new(0), done: AtomicUsize::new(0) }
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
                let is_done = outcome.is_ok() && !matches!(write.log, Target::Lagging);
                self.done.fetch_add(usize::from(is_done), Ordering::Release);
                if matches!(write.log, Target::Closed) || outcome.is_err() {
                    written.push(Written { at: from + at, opened, outcome });
                }
            }
        }
    }

    /// Tells whether the logs have everything: not if a write failed, or one lags.
    pub(super) fn all_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.writes.len()
    }

    fn write(&self, write: &LogWrite) -> (io::Result<()>, Option<Arc<dyn DiskFile>>) {
        let lines = &self.bytes[write.lines.clone()];
        match &write.log {
            Target::Lagging => (Ok(()), None),
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
fn open_log(home: &HomeFiles, stream: StreamId, end: u64) -> io::Result<Arc<dyn DiskFile>> {
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
        let lines = order.chars().enumerate().map(|(at, letter)| {
            let id: SessionId = format!("sess_0123456789abcdefghjkmnpqr{letter}").parse().expect("an id");
            StreamLines { stream: id.into(), range: at..at + 1, offset: at as u64 }
        });
        let writes = LogWrites::new(home, frames, lines.collect(), |_| Target::Lagging);
        let text = |lines: &[u8]| String::from_utf8(lines.to_vec()).expect("digits");
        let last = |stream: StreamId| stream.as_str().chars().last().expect("a letter");
        let all = writes
            .each()
            .map(|(write, lines)| format!("{}{}@{}", last(write.stream), text(lines), write.offset));
        (all.collect(), writes.bytes.len())
    }

    #[test]
    fn each_log_is_written_to_once_with_its_lines_in_their_order() {
        assert_eq!(written("aaab").0, ["a012@0", "b3@3"]);
        assert_eq!(written("atbtctdt").0, ["a0@0", "b2@2", "c4@4", "d6@6", "t1357@1"]);
        assert_eq!(written("ttat").0, ["a2@2", "t013@0"]);
        assert_eq!(written("abcabc").0, ["a03@0", "b14@1", "c25@2"]);
        assert!(written("").0.is_empty());
    }

    #[test]
    fn lines_are_copied_once_at_most() {
        let (all, bytes) = written(&"ab".repeat(500));
        assert_eq!((all.len(), bytes), (2, 2 * 1000));
    }
}
