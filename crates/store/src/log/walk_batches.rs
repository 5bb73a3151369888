//! Folding a long log with two threads, a batch of lines at a time: each reads and verifies a part of the batch, and whoever folds goes
//! on with what the other has read. Most of the work is done without knowing what comes before a line but its hash.

use std::io;
use std::ops::Range;
use std::panic::resume_unwind;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::Event;
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Line;
use rekindle_domain::session::Problem;

use super::cursor::Cursor;
use super::reader::{Forward, LogReader};
use super::walk::{LONG, Replays};

/// How many bytes of lines are in a batch: a thread is started for each.
const BATCH: usize = 2 << 20;

/// Which part of a batch, in percent, is read by the thread that folds all of it.
const OWN_PART: usize = 42;

/// A replay that takes in what somebody else has read.
pub(crate) trait ReplaysChecked: Replays {
    /// Returns the stream whose log it is.
    fn stream(&self) -> StreamId;
    /// Takes in one line that ends at byte `end` of the log and whose hash was verified. It has no event if that cannot be read.
    fn push_checked(&mut self, checked: &Checked<'_>, end: u64) -> Result<(), Problem>;
}

/// A line that follows the one before it, and what it says.
pub(crate) struct Checked<'a> {
    pub(crate) line: Line<'a>,
    pub(crate) event: Option<Event<'a>>,
}

/// Folds a long stretch behind the replay's position, up to its end, to `end`, or to the first line with which something is wrong:
/// whoever walks on from there sees what it is.
pub(crate) fn walk_batches(reader: &LogReader, replay: &mut impl ReplaysChecked, end: u64) -> io::Result<()> {
    let from = replay.position().log_offset;
    if reader.len().min(end).saturating_sub(from) < LONG {
        return Ok(());
    }
    let (mut lines, mut batch) = (reader.forward(Cursor::at(from)), Batch::default());
    while batch.fill(&mut lines, end)? {
        if !replay_batch(replay, &batch) {
            break;
        }
    }
    Ok(())
}

/// Whole lines of a log.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each is, and where it ends in the log.
    lines: Vec<(Range<usize>, u64)>,
    is_last: bool,
}

impl Batch {
    /// Takes the next lines in place of those before; tells whether there are any.
    fn fill(&mut self, lines: &mut Forward<'_>, end: u64) -> io::Result<bool> {
        self.bytes.clear();
        self.lines.clear();
        while self.bytes.len() < BATCH && !self.is_last {
            let Some(raw) = lines.next()?.filter(|raw| raw.whole && raw.start.offset() < end) else {
                self.is_last = true;
                break;
            };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(raw.bytes);
            self.lines.push((start..self.bytes.len(), raw.end.offset()));
        }
        Ok(!self.lines.is_empty())
    }

    fn check(
        &self,
        range: &Range<usize>,
        stream: StreamId,
        before: Option<ChainHash>,
    ) -> Option<Checked<'_>> {
        let line = Line::parse(&self.bytes[range.clone()]).ok()?;
        let follows = line.hash.is_some() && line.follows(stream, before);
        follows.then(|| Checked { event: line.event().ok(), line })
    }
}

/// Folds a batch; tells whether all of it could be.
fn replay_batch(replay: &mut impl ReplaysChecked, batch: &Batch) -> bool {
    let (own, others) = batch.lines.split_at(batch.lines.len() * OWN_PART / 100);
    let (stream, mut before) = (replay.stream(), replay.position().last_hash);
    let hash_before_others = match own.last() {
        Some((last, _)) => Line::parse(&batch.bytes[last.clone()]).ok().and_then(|line| line.hash),
        None => before,
    };
    std::thread::scope(|scope| {
        let check_others = move || {
            let mut before = hash_before_others;
            let check = |(range, _): &(Range<usize>, u64)| {
                let checked = batch.check(range, stream, before)?;
                before = checked.line.hash;
                Some(checked)
            };
            others.iter().map_while(check).collect::<Vec<_>>()
        };
        let checking = std::thread::Builder::new().name("replay".into()).spawn_scoped(scope, check_others);
        // Without another thread the log is read by one.
        let Ok(checking) = checking else { return false };
        for (range, end) in own {
            let Some(checked) = batch.check(range, stream, before) else { return false };
            before = checked.line.hash;
            if replay.push_checked(&checked, *end).is_err() {
                return false;
            }
        }
        let checked = checking.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut ready = checked.iter().zip(others);
        ready.all(|(checked, (_, end))| replay.push_checked(checked, *end).is_ok())
            && checked.len() == others.len()
    })
}
