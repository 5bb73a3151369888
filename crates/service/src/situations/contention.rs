//! Contention for a session: whoever comes too late looks again, and gives up when that has no end.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_store::blobs::Blobs;
use rekindle_store::commit::{Append, Commits, Current, Receipt};
use rekindle_store::log::LogReader;
use rekindle_store::{AppendError, ForkError, History, OpenSessionError, Store};
use rekindle_testkit::gated::DEADLINE;
use rekindle_wire::code::Code;

use super::home::Home;
use crate::lock::locked;
use crate::storage::{AppendReply, Sessions};

/// A store in which somebody else comes before the next appends, so many times.
pub(super) struct Contended {
    pub(super) store: Arc<Store>,
    pub(super) before_us: Arc<AtomicU32>,
    pub(super) arrivals: Arc<Arrivals>,
}

/// Appends that were asked for and are waited for, done or not.
#[derive(Default)]
pub(super) struct Arrivals {
    count: Mutex<u32>,
    changed: Condvar,
}

impl Arrivals {
    fn add(&self) {
        *locked(&self.count) += 1;
        self.changed.notify_all();
    }

    /// Begins to count.
    pub(super) fn reset(&self) {
        *locked(&self.count) = 0;
    }

    /// Waits until there were so many.
    pub(super) fn await_count(&self, count: u32) {
        let waited = self.changed.wait_timeout_while(locked(&self.count), DEADLINE, |seen| *seen < count);
        let seen = *waited.unwrap_or_else(PoisonError::into_inner).0;
        assert!(seen >= count, "{seen} of {count} were asked for at the same time");
    }
}

impl Sessions for Contended {
    fn append_with(&self, append: Append, told: AppendReply) {
        let stream = append.stream;
        let others = self.before_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        match others {
            Ok(_) => told(Err(AppendError::Moved { stream, expected: 1, found: 2 })),
            Err(_) => self.store.append_with(append, told),
        }
    }

    fn append(&self, append: Append) -> Result<Receipt, AppendError> {
        self.arrivals.add();
        self.store.append(append)
    }

    fn create(&self, session: SessionId) -> io::Result<()> {
        self.store.create(session)
    }

    fn open_session(&self, session: SessionId) -> Result<Current, OpenSessionError> {
        self.store.open_session(session)
    }

    fn at_hand(&self, session: SessionId) -> Option<Current> {
        self.store.at_hand(session)
    }

    fn close_session(&self, session: SessionId) {
        self.store.close_session(session);
    }

    fn sync(&self) -> Result<(), AppendError> {
        self.store.committer().sync()
    }

    fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        self.store.reader(session)
    }

    fn history(&self, session: SessionId) -> io::Result<History> {
        self.store.history(session)
    }

    fn fork_point(&self, session: SessionId, seq: u64) -> io::Result<Option<ForkedFrom>> {
        self.store.fork_point(session, seq)
    }

    fn fork(&self, append: Append) -> Result<Receipt, ForkError> {
        self.store.fork(append).map(|receipts| receipts.first)
    }

    fn blobs(&self) -> Blobs {
        self.store.blobs()
    }

    fn snapshot(&self, session: SessionId) -> Result<u64, OpenSessionError> {
        self.store.snapshot(session)
    }

    fn remove(&self, session: SessionId) -> io::Result<()> {
        self.store.remove(session)
    }

    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        self.store.set_aside(session)
    }
}

// I3: a message that was told to be taken is there once, however often somebody else came before it.
#[test]
fn a_message_that_comes_too_late_is_given_again() {
    for others in [1, 2, 15] {
        let mut home = Home::new(&["text end"]);
        home.before_us.store(others, Ordering::Relaxed);
        home.send();
        assert_eq!((home.count("message.user"), home.count("run.completed")), (1, 1), "{others}");
    }
}

// I3: one that was not taken is not there.
#[test]
fn a_message_that_always_comes_too_late_is_refused() {
    let mut home = Home::new(&["text end"]);
    home.before_us.store(16, Ordering::Relaxed);
    assert_eq!(home.message().expect_err("too late").code, Code::Busy);
    home.settle();
    assert_eq!((home.course().as_str(), home.scripted.launches()), ("", 0));
    home.send();
    assert_eq!((home.count("message.user"), home.count("run.completed")), (1, 1));
}
