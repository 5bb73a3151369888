//! The outbox: which notices wait for whom, and how far streams were read. Everything in it comes from entries, each one line of a
//! file; whoever reads them again is where it was. What a stream was found to say and how far it was read are one entry, so that no
//! reader is ever further than its notices. Pure: the file is somebody else's.

mod cursor;
mod entry;
mod pending;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rekindle_domain::id::StreamId;
use rekindle_domain::time::Timestamp;

pub use self::cursor::Cursor;
pub use self::entry::{Entry, Noticed, Outcome, Recipients, Told};
pub use self::pending::{Held, Waiting};
pub use self::queue::{Next, Queue};
use crate::notice::Notice;

/// Deliveries that are remembered, for people who ask what they were told.
pub const REMEMBERED: usize = 1_000;

/// A notice that may still turn out not to be worth telling.
#[derive(Debug, Clone, PartialEq)]
pub struct Settling {
    /// The notice.
    pub notice: Arc<Notice>,
    /// When it is decided.
    pub due: Timestamp,
    /// Sinks that were told already; the others are told when nobody looks any more.
    pub told: Vec<String>,
}

/// Everything that entries amount to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outbox {
    /// Everything written before this was read in streams that have no cursor; none before the first time.
    as_of: Option<Timestamp>,
    next: u64,
    cursors: BTreeMap<StreamId, Cursor>,
    settling: BTreeMap<u64, Settling>,
    queues: BTreeMap<String, Queue>,
    recent: VecDeque<Told>,
}

impl Outbox {
    /// Takes in the next entry.
    pub fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::AsOf { at, next } => (self.as_of, self.next) = (Some(at), self.next.max(next)),
            Entry::Step { cursors, notices } => {
                for cursor in cursors {
                    self.cursors.insert(cursor.stream, cursor);
                }
                notices.into_iter().for_each(|noticed| self.notice(noticed));
            }
            Entry::Forgotten { stream } => drop(self.cursors.remove(&stream)),
            Entry::Settled { n, at, to, open } => self.settle(n, at, &to, open),
            Entry::Held { sink, until } => self.queue(&sink).hold(until),
            Entry::Attempt { sink, n, failures, next, why, .. } => {
                self.queue(&sink).note_failure(n, failures, next, why);
            }
            Entry::Summary { sink, held } => self.queue(&sink).held = Some(held),
            Entry::Told(told) => {
                self.queue(&told.sink).remove(&told);
                if self.recent.len() >= REMEMBERED {
                    self.recent.pop_front();
                }
                self.recent.push_back(told);
            }
        }
    }

    /// Returns the fewest entries that amount to the same.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let as_of = self.as_of.map(|at| Entry::AsOf { at, next: self.next });
        let recent = self.recent.iter().cloned().map(Entry::Told);
        let cursors = self
            .cursors
            .values()
            .cloned()
            .map(|cursor| Entry::Step { cursors: vec![cursor], notices: Vec::new() });
        let settling = self.settling.iter().flat_map(|(n, settling)| {
            let Settling { notice, due, told } = settling;
            let noticed = Noticed {
                n: *n,
                at: *due,
                notice: Notice::clone(notice),
                due: Some(*due),
                told: told.clone(),
                to: Recipients::default(),
            };
            [Entry::Step { cursors: Vec::new(), notices: vec![noticed] }]
        });
        let queued = self.queues.iter().flat_map(|(sink, queue)| queue.entries(sink));
        as_of.into_iter().chain(recent).chain(cursors).chain(settling).chain(queued)
    }

    /// Returns how far streams without a cursor were read; none if nothing was ever looked at.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// Returns the number of the next notice.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns how far a stream was read.
    pub fn cursor(&self, stream: StreamId) -> Option<&Cursor> {
        self.cursors.get(&stream)
    }

    /// Returns the streams of which it is known how far they were read.
    pub fn cursors(&self) -> impl Iterator<Item = &Cursor> {
        self.cursors.values()
    }

    /// Returns the notices that are still to be decided about.
    pub fn settling(&self) -> impl Iterator<Item = (u64, &Settling)> {
        self.settling.iter().map(|(n, settling)| (*n, settling))
    }

    /// Puts the decision about a notice off.
    pub fn put_off(&mut self, n: u64, due: Timestamp) {
        if let Some(settling) = self.settling.get_mut(&n) {
            settling.due = due;
        }
    }

    /// Returns what waits for a sink.
    pub fn waiting_for(&self, sink: &str) -> Option<&Queue> {
        self.queues.get(sink)
    }

    /// Returns the queues of all sinks.
    pub fn queues(&self) -> impl Iterator<Item = (&str, &Queue)> {
        self.queues.iter().map(|(sink, queue)| (sink.as_str(), queue))
    }

    /// Returns what was told last, the oldest first.
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Told> {
        self.recent.iter()
    }

    /// Forgets what waits for sinks that are not there any more.
    pub fn keep_sinks(&mut self, is_there: impl Fn(&str) -> bool) {
        self.queues.retain(|sink, _| is_there(sink));
    }

    fn queue(&mut self, sink: &str) -> &mut Queue {
        self.queues.entry(sink.to_owned()).or_default()
    }

    fn notice(&mut self, noticed: Noticed) {
        let Noticed { n, at, notice, due, told, to } = noticed;
        self.next = self.next.max(n + 1);
        let notice = Arc::new(notice);
        self.send(n, at, &notice, &to);
        if let Some(due) = due {
            self.settling.insert(n, Settling { notice, due, told });
        }
    }

    fn settle(&mut self, n: u64, at: Timestamp, to: &Recipients, open: bool) {
        let Some(mut settling) = self.settling.remove(&n) else { return };
        self.send(n, at, &settling.notice, to);
        if open {
            settling.told.extend(to.names().map(str::to_owned));
            self.settling.insert(n, settling);
        }
    }

    fn send(&mut self, n: u64, at: Timestamp, notice: &Arc<Notice>, to: &Recipients) {
        for sink in &to.now {
            self.queue(sink).push(Waiting::new(n, notice.clone(), at));
        }
        for (sink, until) in &to.later {
            self.queue(sink).fold(notice, *until, at);
        }
    }
}
