//! Putting lines that the write-ahead log has into the session logs, many at a time.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rekindle_domain::id::SessionId;

use crate::disk::{DiskFile, write_all_at};

/// Lines on their way into a session's log.
pub(super) struct LogWrite<'a> {
    pub(super) session: SessionId,
    /// The log, unless it is behind.
    pub(super) log: Option<Arc<dyn DiskFile>>,
    /// The lines of the group, and which of them.
    pub(super) all: &'a [u8],
    pub(super) lines: Range<usize>,
    pub(super) offset: u64,
}

impl LogWrite<'_> {
    fn carry_out(&self) -> io::Result<()> {
        let lines = &self.all[self.lines.clone()];
        self.log.as_ref().map_or(Ok(()), |log| write_all_at(&**log, lines, self.offset))
    }
}

/// From this many logs on a second thread is worth its start.
const LOGS_FOR_TWO: usize = 128;

/// Writes to many logs and returns the sessions whose log could not be written.
pub(super) fn write_all(writes: &[LogWrite<'_>]) -> Vec<SessionId> {
    let write = |writes: &[LogWrite<'_>]| -> Vec<SessionId> {
        writes.iter().filter(|write| write.carry_out().is_err()).map(|write| write.session).collect()
    };
    if writes.len() < LOGS_FOR_TWO {
        return write(writes);
    }
    let (mine, others) = writes.split_at(writes.len() / 2);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| write(others));
        let mut failed = write(mine);
        // A write does not panic; were it to, every log of that half would count as not written.
        failed.extend(helper.join().unwrap_or_else(|_| others.iter().map(|write| write.session).collect()));
        failed
    })
}
