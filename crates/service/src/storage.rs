//! The storage that services work with: narrow views of a home's store, each with what one part needs, so that a test can
//! put something else in its place.

use std::io;
use std::path::PathBuf;

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::blobs::Blobs;
use rekindle_store::commit::{Append, Commits, Current, Receipt};
use rekindle_store::log::{Damage, LogReader};
use rekindle_store::{
    AppendError, ForkError, History, LoadError, Loaded, OpenSessionError, Store, Visitor, Want,
};

use crate::task_link::with_task_records;

/// A function that is told the outcome of an append, on the committer's thread: it must not block.
pub type AppendReply = Box<dyn FnOnce(Result<Receipt, AppendError>) + Send>;

/// The sessions of a home, for whoever works in them.
pub trait Sessions: Send + Sync {
    /// Begins a session's log.
    fn create(&self, session: SessionId) -> io::Result<()>;
    /// Returns a session, ready to be appended to.
    fn open_session(&self, session: SessionId) -> Result<Current, OpenSessionError>;
    /// Returns a session if it can be looked at without waiting for anyone.
    fn at_hand(&self, session: SessionId) -> Option<Current>;
    /// Lets go of a session that nobody works in any more.
    fn close_session(&self, session: SessionId);
    /// Says that an append is about to come, which is committed sooner then.
    fn expect_append(&self) {}
    /// Appends and waits.
    fn append(&self, append: Append) -> Result<Receipt, AppendError>;
    /// Appends without waiting.
    fn append_with(&self, append: Append, told: AppendReply);
    /// Makes everything appended before durable.
    fn sync(&self) -> Result<(), AppendError>;
    /// Opens a session's log for reading.
    fn reader(&self, session: SessionId) -> io::Result<LogReader>;
    /// Opens a session's whole history for reading: its log, and before it what it was forked from.
    fn history(&self, session: SessionId) -> io::Result<History>;
    /// Returns the point at which a session can be forked behind a record of its history; none if it has no such record.
    fn fork_point(&self, session: SessionId, seq: u64) -> io::Result<Option<ForkedFrom>>;
    /// Makes a fork with its first records, and whatever is recorded elsewhere with them.
    fn fork(&self, append: Append) -> Result<Receipt, ForkError>;
    /// Returns where large payloads are.
    fn blobs(&self) -> Blobs;
    /// Writes a session's caches, and returns their size.
    fn snapshot(&self, session: SessionId) -> Result<u64, OpenSessionError>;
    /// Removes the files of a session whose deletion is recorded.
    fn remove(&self, session: SessionId) -> io::Result<()>;
    /// Sets the files of a damaged session aside, and tells where.
    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf>;
}

/// The sessions of a home, for whoever lists and shows them.
pub trait Catalog: Sessions {
    /// Looks at every session, but for long logs that are in no cache, of which the visitor is told so.
    fn survey(&self, visit: &Visitor<'_>) -> io::Result<()>;
    /// Loads a session without making it ready to be appended to.
    fn load(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError>;
    /// Reads what can be shown of a session that cannot be loaded, or not yet.
    fn stand_in(&self, session: SessionId, error: &LoadError) -> Loaded;
    /// Returns how long a session's log is, in bytes.
    fn log_size(&self, state: &SessionState) -> u64;
    /// Reads a log up to where a state stands, and tells where it is damaged.
    fn examine(&self, state: &SessionState) -> Result<Option<Damage>, LoadError>;
    /// Returns why a session's log lacks records that are in the write-ahead log, if it does.
    fn lagging(&self, session: SessionId) -> Option<String>;
}

impl Sessions for Store {
    fn create(&self, session: SessionId) -> io::Result<()> {
        Store::create(self, session)
    }

    fn open_session(&self, session: SessionId) -> Result<Current, OpenSessionError> {
        Store::open_session(self, session)
    }

    fn at_hand(&self, session: SessionId) -> Option<Current> {
        Store::at_hand(self, session)
    }

    fn close_session(&self, session: SessionId) {
        Store::close_session(self, session);
    }

    fn expect_append(&self) {
        Store::expect_append(self);
    }

    fn append(&self, append: Append) -> Result<Receipt, AppendError> {
        Store::append(self, with_task_records(self, append))
    }

    fn append_with(&self, append: Append, told: AppendReply) {
        Store::append_with(self, with_task_records(self, append), told);
    }

    fn sync(&self) -> Result<(), AppendError> {
        self.committer().sync()
    }

    fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        Store::reader(self, session)
    }

    fn history(&self, session: SessionId) -> io::Result<History> {
        Store::history(self, session)
    }

    fn fork_point(&self, session: SessionId, seq: u64) -> io::Result<Option<ForkedFrom>> {
        Store::fork_point(self, session, seq)
    }

    fn fork(&self, append: Append) -> Result<Receipt, ForkError> {
        Store::fork(self, append).map(|receipts| receipts.first)
    }

    fn blobs(&self) -> Blobs {
        Store::blobs(self)
    }

    fn snapshot(&self, session: SessionId) -> Result<u64, OpenSessionError> {
        Store::snapshot(self, session)
    }

    fn remove(&self, session: SessionId) -> io::Result<()> {
        Store::remove(self, session)
    }

    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        Store::set_aside(self, session)
    }
}

impl Catalog for Store {
    fn survey(&self, visit: &Visitor<'_>) -> io::Result<()> {
        Store::survey_small(self, visit)
    }

    fn load(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        Store::load(self, session, want)
    }

    fn stand_in(&self, session: SessionId, error: &LoadError) -> Loaded {
        match error {
            LoadError::Unread { .. } => Store::head(self, session),
            _ => Store::stand_in(self, session),
        }
    }

    fn log_size(&self, state: &SessionState) -> u64 {
        Store::log_size(self, state)
    }

    fn examine(&self, state: &SessionState) -> Result<Option<Damage>, LoadError> {
        self.broken_before(state.id, self.end_of(state))
    }

    fn lagging(&self, session: SessionId) -> Option<String> {
        Store::lagging(self, session)
    }
}
