//! The inbox of the thread that looks at what is recorded: which streams have news, and from where on. Whoever appends notes it here, and
//! only if its records are news; everything else is read from the logs.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;
use rekindle_domain::kept_snapshot::Activity;
use rekindle_store::Observer;
use rekindle_store::commit::Receipt;

use super::read_pipeline::ReadPipeline;
use super::read_session::ReadSession;
use super::read_tasks::ReadTasks;
use crate::lock::locked;

/// A log that was read, or why it was not.
pub(super) struct Read {
    pub(super) stream: StreamId,
    pub(super) found: std::io::Result<Found>,
}

/// What was found in it.
pub(super) enum Found {
    Session(ReadSession),
    Tasks(Box<ReadTasks>),
    Pipeline(ReadPipeline),
}

/// What has happened since somebody looked.
#[derive(Default)]
pub(super) struct Happened {
    /// The first record that is news, of each stream that has any.
    pub(super) news: HashMap<StreamId, u64>,
    /// Logs that were read.
    pub(super) read: Vec<Read>,
    /// Nobody needs the thread any more.
    pub(super) closed: bool,
}

/// Where news are noted.
#[derive(Default)]
pub(super) struct Inbox {
    happened: Mutex<Happened>,
    woken: Condvar,
}

impl Inbox {
    /// Notes that a stream has news from a record on; tells the thread of the first.
    pub(super) fn note(&self, stream: StreamId, seq: u64) {
        let mut happened = locked(&self.happened);
        let is_first = happened.news.is_empty();
        let first = happened.news.entry(stream).or_insert(seq);
        *first = seq.min(*first);
        if is_first {
            self.woken.notify_one();
        }
    }

    /// Hands over what a log says.
    pub(super) fn hand_over(&self, read: Read) {
        locked(&self.happened).read.push(read);
        self.woken.notify_one();
    }

    /// Ends the waiting.
    pub(super) fn close(&self) {
        locked(&self.happened).closed = true;
        self.woken.notify_one();
    }

    /// Waits until something has happened, or for so long, and returns what has. News alone end it only from `quiet_until` on: where there
    /// are a thousand a second, they are taken together.
    pub(super) fn wait(&self, most: Duration, quiet_until: Option<Instant>) -> Happened {
        let (end, mut happened) = (Instant::now() + most, locked(&self.happened));
        loop {
            let now = Instant::now();
            let end = match quiet_until {
                Some(until) if !happened.news.is_empty() => end.min(until),
                None if !happened.news.is_empty() => now,
                _ => end,
            };
            let left = end.saturating_duration_since(now);
            if !happened.read.is_empty() || happened.closed || left.is_zero() {
                let closed = happened.closed;
                return Happened { closed, ..std::mem::take(&mut *happened) };
            }
            happened = self.woken.wait_timeout(happened, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Observer for Inbox {
    fn committed(&self, _: StreamId, _: &Receipt) {}

    fn answered(&self, _: StreamId, _: &Receipt) {}

    fn happened(&self, stream: StreamId, receipt: &Receipt, activity: Activity) {
        if activity.is_news {
            self.note(stream, receipt.first_seq);
        }
    }
}
