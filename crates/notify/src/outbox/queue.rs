//! What waits for one sink: notices, each told by itself, and behind them a summary of what is too much for that. However much
//! happens, a queue takes no more room than it may.

use std::collections::VecDeque;

use rekindle_domain::time::Timestamp;

use super::entry::{Entry, Noticed, Recipients, Told};
use super::pending::{Held, Waiting};
use crate::notice::{Notice, Summary};

/// Notices that wait for one sink by themselves. What comes behind them is summed up: nobody reads hundreds of messages, and a target
/// that hangs must not fill the memory.
const MOST_WAITING: usize = 256;

/// What is to be done for a sink.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This notice is delivered.
    Notice(Waiting),
    /// This summary is.
    Summary(Held),
    /// Nothing before a time.
    Rest(Timestamp),
    /// Nothing.
    Idle,
}

/// The queue of one sink.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    pub(super) held: Option<Held>,
}

impl Queue {
    /// Returns what is to be done now. In order: a target that is away is away for all, and a summary comes before what happened
    /// behind its beginning, unless it is held back.
    pub fn next(&self, now: Timestamp) -> Next {
        match (self.waiting.front(), &self.held) {
            (Some(first), Some(held))
                if held.next <= now && held.since < first.since && first.failures == 0 =>
            {
                Next::Summary(held.clone())
            }
            (Some(first), _) if first.next <= now => Next::Notice(first.clone()),
            (Some(first), _) => Next::Rest(first.next),
            (None, Some(held)) if held.next <= now => Next::Summary(held.clone()),
            (None, Some(held)) => Next::Rest(held.next),
            (None, None) => Next::Idle,
        }
    }

    /// Returns how many notices wait, those that are summed up included.
    pub fn len(&self) -> u64 {
        let summed = self.held.iter().flat_map(|held| held.summary.counts.values());
        self.waiting.len() as u64 + summed.sum::<u64>()
    }

    /// Tells whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_none()
    }

    /// Returns since when the oldest waits.
    pub fn oldest(&self) -> Option<Timestamp> {
        let held = self.held.as_ref().map(|held| held.since);
        self.waiting.front().map(|first| first.since).into_iter().chain(held).min()
    }

    /// Returns why what waits first was not delivered yet, if that was tried.
    pub fn why(&self) -> Option<&str> {
        let why = match (self.waiting.front(), &self.held) {
            (Some(first), _) => &first.why,
            (None, Some(held)) => &held.why,
            (None, None) => return None,
        };
        Some(why.as_str()).filter(|why| !why.is_empty())
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        if self.waiting.len() >= MOST_WAITING {
            let Waiting { notice, since, .. } = waiting;
            return self.fold(&notice, since, since);
        }
        self.waiting.push_back(waiting);
    }

    /// Adds a notice to the summary, which is not told before a time.
    pub(super) fn fold(&mut self, notice: &Notice, until: Timestamp, since: Timestamp) {
        match &mut self.held {
            Some(held) => {
                held.summary.add(notice);
                held.next = held.next.max(until);
            }
            None => {
                self.held = Some(Held {
                    summary: Summary::of(notice),
                    next: until,
                    since,
                    failures: 0,
                    why: String::new(),
                });
            }
        }
    }

    /// Sums up everything that waits, to be told not before a time.
    pub(super) fn hold(&mut self, until: Timestamp) {
        let behind = self.held.take();
        for waiting in std::mem::take(&mut self.waiting) {
            self.fold(&waiting.notice, until, waiting.since);
        }
        match (&mut self.held, behind) {
            (Some(held), Some(behind)) => held.add(behind),
            (None, behind) => self.held = behind,
            (Some(_), None) => {}
        }
        if let Some(held) = &mut self.held {
            held.next = held.next.max(until);
        }
    }

    pub(super) fn note_failure(&mut self, n: Option<u64>, failures: u32, next: Timestamp, why: String) {
        match n {
            Some(n) => {
                if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.n == n) {
                    (waiting.failures, waiting.next, waiting.why) = (failures, next, why);
                }
            }
            None => {
                if let Some(held) = &mut self.held {
                    (held.failures, held.next, held.why) = (failures, next, why);
                }
            }
        }
    }

    /// Takes out what is over: a notice, or what a summary counted. What was added to that while it was on its way stays.
    pub(super) fn remove(&mut self, told: &Told) {
        if let Some(n) = told.n {
            return self.waiting.retain(|waiting| waiting.n != n);
        }
        let Some(held) = &mut self.held else { return };
        for (kind, count) in &told.counts {
            if let Some(left) = held.summary.counts.get_mut(kind) {
                *left = left.saturating_sub(*count);
            }
        }
        held.summary.counts.retain(|_, left| *left > 0);
        (held.since, held.summary.since, held.failures) = (told.at, held.summary.until, 0);
        held.why.clear();
        if held.summary.counts.is_empty() {
            self.held = None;
        }
    }

    /// Returns the entries that make it what it is.
    pub(super) fn entries(&self, sink: &str) -> impl Iterator<Item = Entry> {
        let sink = sink.to_owned();
        let held = self.held.clone().map(|held| Entry::Summary { sink: sink.clone(), held });
        let notices = self.waiting.iter().flat_map(move |waiting| {
            let Waiting { n, notice, since, failures, next, why } = waiting;
            let to = Recipients { now: vec![sink.clone()], ..Recipients::default() };
            let noticed =
                Noticed { n: *n, at: *since, notice: Notice::clone(notice), due: None, told: Vec::new(), to };
            let (n, sink, at) = (Some(*n), sink.clone(), *since);
            let failed = (*failures > 0).then(|| Entry::Attempt {
                sink,
                n,
                at,
                failures: *failures,
                next: *next,
                why: why.clone(),
            });
            [Entry::Step { cursors: Vec::new(), notices: vec![noticed] }].into_iter().chain(failed)
        });
        // The summary last: what comes behind one is summed up.
        notices.chain(held)
    }
}
