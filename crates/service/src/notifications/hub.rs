//! The hub: the outbox and its file, between whoever finds what there is to tell and those who deliver it. Every change is an entry that
//! is written first and taken in then, so that what a crash leaves is what it would have been.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rekindle_domain::time::{Clock, Timestamp};
use rekindle_notify::outbox::{Entry, Held, Next, Outbox, Outcome, Waiting};
use rekindle_notify::{Admission, RateLimit};
use rekindle_store::disk::SharedDisk;

use super::counts::{Deliveries, SinkCounts};
use super::outbox_file::{OutboxError, OutboxFile};
use crate::lock::locked;

/// The longest that a thread sleeps: the clock on the wall may have been set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// What is to be delivered.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Job {
    Notice(Waiting),
    Summary(Held),
}

/// What there is to do for a sink.
enum Look {
    Job(Job),
    Rest(Timestamp),
    Idle,
}

/// The outbox of a daemon.
pub(super) struct Hub {
    inner: Mutex<Inner>,
    /// Rung when there is something to deliver.
    bell: Condvar,
    clock: Arc<dyn Clock>,
    counts: BTreeMap<String, Deliveries>,
}

pub(super) struct Inner {
    pub(super) outbox: Outbox,
    file: OutboxFile,
    /// What was there before is known, and how it stands with that.
    open: bool,
    closed: bool,
}

impl Hub {
    pub(super) fn new(
        disk: SharedDisk,
        path: PathBuf,
        clock: Arc<dyn Clock>,
        sinks: impl Iterator<Item = String>,
    ) -> Hub {
        let file = OutboxFile::new(disk, path);
        let inner = Inner { outbox: Outbox::default(), file, open: false, closed: false };
        let counts = sinks.map(|sink| (sink, Deliveries::default())).collect();
        Hub { inner: Mutex::new(inner), bell: Condvar::new(), clock, counts }
    }

    /// Reads what the last daemon left, and writes it anew without what does not count any more.
    pub(super) fn load(&self) -> Result<(), OutboxError> {
        let mut inner = locked(&self.inner);
        let mut outbox = inner.file.load()?;
        outbox.keep_sinks(|sink| self.counts.contains_key(sink));
        inner.outbox = outbox;
        if inner.outbox.as_of().is_some() {
            let Inner { file, outbox, .. } = &mut *inner;
            file.write_anew(outbox);
        }
        Ok(())
    }

    /// Lets deliveries begin.
    pub(super) fn open(&self) {
        locked(&self.inner).open = true;
        self.bell.notify_all();
    }

    /// Looks at the outbox.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Outbox) -> T) -> T {
        look(&mut locked(&self.inner).outbox)
    }

    /// Tells whether nothing more may be added, because the disk takes nothing.
    pub(super) fn is_full(&self) -> bool {
        locked(&self.inner).file.is_full()
    }

    /// Writes entries, in one go, and takes them in.
    pub(super) fn write(&self, entries: Vec<Entry>) {
        self.write_locked(&mut locked(&self.inner), entries);
    }

    fn write_locked(&self, inner: &mut MutexGuard<'_, Inner>, entries: Vec<Entry>) {
        let Inner { outbox, file, .. } = &mut **inner;
        file.add(&entries);
        for entry in entries {
            if let Entry::Told(told) = &entry
                && let Some(deliveries) = self.counts.get(&told.sink)
            {
                deliveries.count(told.outcome);
            }
            if let Entry::Attempt { sink, .. } = &entry
                && let Some(deliveries) = self.counts.get(sink)
            {
                deliveries.failed.inc();
            }
            outbox.apply(entry);
        }
        if file.is_large() {
            file.write_anew(outbox);
        }
        self.bell.notify_all();
    }

    /// Tries again to write what could not be written.
    pub(super) fn flush(&self) {
        locked(&self.inner).file.flush();
    }

    /// Waits for the next thing to deliver to a sink; none if nobody is to deliver any more.
    pub(super) fn next_job(&self, sink: &str, limit: &mut RateLimit) -> Option<Job> {
        let mut inner = locked(&self.inner);
        while !inner.closed {
            let now = self.clock.now();
            match self.look(&mut inner, sink, limit, now) {
                Look::Job(job) => return Some(job),
                Look::Rest(until) => inner = self.sleep(inner, until, now),
                Look::Idle => inner = self.bell.wait(inner).unwrap_or_else(PoisonError::into_inner),
            }
        }
        None
    }

    /// Returns the next thing to deliver to a sink, if there is any now.
    #[cfg(test)]
    pub(super) fn job_at_hand(&self, sink: &str, limit: &mut RateLimit) -> Option<Job> {
        match self.look(&mut locked(&self.inner), sink, limit, self.clock.now()) {
            Look::Job(job) => Some(job),
            Look::Rest(_) | Look::Idle => None,
        }
    }

    /// Looks what there is to deliver to a sink. What is more than the sink's limit allows is summed up.
    fn look(
        &self,
        inner: &mut MutexGuard<'_, Inner>,
        sink: &str,
        limit: &mut RateLimit,
        now: Timestamp,
    ) -> Look {
        let next = inner.outbox.waiting_for(sink).filter(|_| inner.open).map(|queue| queue.next(now));
        let (job, failures) = match next {
            Some(Next::Notice(waiting)) => (Job::Notice(waiting.clone()), waiting.failures),
            Some(Next::Summary(held)) => (Job::Summary(held.clone()), held.failures),
            Some(Next::Rest(until)) => return Look::Rest(until),
            Some(Next::Idle) | None => return Look::Idle,
        };
        // What is repeated was let through before.
        match if failures == 0 { limit.admit(now) } else { Admission::Now } {
            Admission::Now => Look::Job(job),
            Admission::Later(until) => {
                self.write_locked(inner, vec![Entry::Held { sink: sink.to_owned(), until }]);
                Look::Rest(until)
            }
        }
    }

    fn sleep<'a>(
        &self,
        inner: MutexGuard<'a, Inner>,
        until: Timestamp,
        now: Timestamp,
    ) -> MutexGuard<'a, Inner> {
        let most = Duration::from_millis(until.millis_since(now)).min(LONGEST_SLEEP);
        self.bell.wait_timeout(inner, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Has those who deliver leave.
    pub(super) fn close(&self) {
        locked(&self.inner).closed = true;
        self.bell.notify_all();
    }

    /// Returns what is counted of each sink.
    pub(super) fn counts(&self) -> Vec<SinkCounts> {
        let (inner, now) = (locked(&self.inner), self.clock.now());
        let of = |(sink, deliveries): (&String, &Deliveries)| {
            let queue = inner.outbox.waiting_for(sink);
            let oldest = queue.and_then(|queue| queue.oldest());
            let ended = Outcome::ALL.iter().zip(&deliveries.ended);
            SinkCounts {
                sink: sink.clone(),
                ended: ended.map(|(outcome, count)| (outcome.name(), count.get())).collect(),
                failed: deliveries.failed.get(),
                waiting: queue.map_or(0, |queue| queue.len()),
                oldest_ms: oldest.map_or(0, |oldest| now.millis_since(oldest)),
            }
        };
        self.counts.iter().map(of).collect()
    }
}
