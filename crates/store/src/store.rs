//! The store: one home, opened by its one owner. Wiring only; each part is its own file.

mod announce;
mod catalog;
mod fork;
mod import_history;
mod import_run;
mod import_staged;
mod keep_snapshots;
mod pipelines;
mod stream_locks;
mod tasks;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::event::LogRepaired;
use rekindle_domain::id::{BootId, SessionId, StreamId};
use rekindle_domain::quarantine::Quarantine;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::TasksState;
use rekindle_domain::time::Clock;
use rekindle_domain::token::TokenIndex;

pub use self::fork::ForkError;
pub use self::import_staged::ImportStagedError;
pub use self::keep_snapshots::KeepError;
use self::stream_locks::StreamLocks;
use crate::blobs::Blobs;
use crate::cache::{self, Cached};
use crate::commit::{
    Append, CommitMachine, Commits, Committed, Committer, Current, Inline, Limits, Receipt, Receipts,
};
use crate::crash_report::{self, at_work};
use crate::disk::{OpenMode, RealDisk, RetryDisk, SharedDisk};
use crate::error::{AppendError, AtPath, PathError};
use crate::fold::Fold;
use crate::forks::Forks;
use crate::home::{self, HomeError, HomeId, HomeLock, Origin};
use crate::home_files::HomeFiles;
use crate::lagging::{LaggingLogs, LogOverlay};
use crate::layout::Layout;
use crate::load::{Effort, LoadError, Want, load, load_logged};
use crate::load_stream::load_stream;
use crate::log::{Cursor, Damage, Follower, LogReader, Torn, broken_before};
use crate::meter::Meter;
use crate::observers::{Observer, Observers};
use crate::recover::{RecoverError, Recovered, recover};
use crate::session_fold::SessionFold;

/// Who opens a home.
#[derive(Debug, Clone, Copy)]
pub struct Opener {
    /// Its process.
    pub pid: u32,
    /// Its life.
    pub boot_id: BootId,
}

/// Why a home could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The home itself.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its write-ahead log.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// Its committer's thread.
    #[error("cannot start the committer")]
    Thread(#[source] io::Error),
}

/// A home that is open for writing.
pub struct Store<C: Commits = Committer> {
    // Dropped in this order: the committer writes until it is gone, so the lock goes after it. It has the lock too, for
    // the case that the store is let go of on the committer's own thread, which goes on for a moment.
    committer: C,
    lock: Arc<HomeLock>,
    /// The disk, on which lagging logs are seen as they are committed.
    home: HomeFiles,
    lagging: Arc<LaggingLogs>,
    recovered: Recovered,
    /// Repairs made when the home was opened that their sessions have not recorded yet.
    unannounced: Mutex<HashMap<SessionId, Vec<LogRepaired<'static>>>>,
    /// Held while a stream is loaded, so that two callers do not load the same one.
    loading: StreamLocks,
    /// Held while a snapshot of a session is kept, or its files go: none is kept of a session that is gone.
    keeping: StreamLocks,
    /// The list that the last owner left has been compared with the logs.
    list_compared: Mutex<bool>,
    /// The forks of all sessions, once somebody needed them. Held while one is made and while a session's history is kept for them.
    forks: Mutex<Option<Forks>>,
    /// Caches and blobs are written one at a time, so that two callers do not share a temporary file.
    writing: Arc<Mutex<()>>,
    blobs: Blobs,
    /// Who is told of every append.
    observers: Observers,
    meter: Arc<Meter>,
}

impl Store {
    /// Opens a home, making it if there is none, and completes its logs.
    pub fn open(
        disk: SharedDisk,
        home: impl Into<PathBuf>,
        opener: Opener,
        clock: Arc<dyn Clock>,
    ) -> Result<Store, OpenError> {
        // Half of what may be open at once is for everything else.
        let descriptors = RealDisk::raise_descriptor_limit() as usize / 2;
        let limits = Limits { open_logs: descriptors.clamp(16, MOST_OPEN_LOGS), ..Limits::default() };
        Store::open_with(disk, Layout::new(home), opener, clock, limits)
    }

    /// Appends without waiting; `reply` is called on the committer's thread and must not block.
    pub fn append_with(
        &self,
        append: Append,
        reply: impl FnOnce(Result<Receipt, AppendError>) + Send + 'static,
    ) {
        let audience = self.observers.of(&append);
        self.committer.submit_with(append, move |outcome| match outcome {
            Ok(receipts) => {
                audience.committed(&receipts);
                reply(Ok(receipts.first));
                audience.answered(&receipts);
            }
            Err(error) => reply(Err(error)),
        });
    }

    /// Returns a session if it can be looked at without waiting for anyone.
    pub fn at_hand(&self, session: SessionId) -> Option<Current> {
        self.committer.at_hand::<SessionFold>(session.into()).map(Current::from)
    }

    /// Returns the tasks that have not ended, if they can be looked at without waiting for anyone.
    pub fn tasks_at_hand(&self) -> Option<Committed<TasksState>> {
        self.committer.at_hand(StreamId::tasks())
    }
}

impl Store<Inline> {
    /// Opens a home with its committer on the caller's thread.
    pub fn open_inline(
        disk: SharedDisk,
        layout: Layout,
        opener: Opener,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Result<Store<Inline>, OpenError> {
        Store::open_with(disk, layout, opener, clock, limits)
    }

    /// Opens a home whose lock the caller has, with its committer on the caller's thread.
    pub fn open_held(
        disk: SharedDisk,
        home: impl Into<PathBuf>,
        lock: HomeLock,
        clock: Arc<dyn Clock>,
    ) -> Result<Store<Inline>, OpenError> {
        let (disk, layout) = (Arc::new(RetryDisk(disk)) as SharedDisk, Layout::new(home));
        home::prepare(&*disk, &layout)?;
        Store::open_locked(disk, layout, lock, clock, Limits::default())
    }

    /// Closes the home and gives its lock back.
    pub fn into_lock(self) -> HomeLock {
        let Store { committer, lock, .. } = self;
        drop(committer);
        Arc::into_inner(lock).expect("an inline committer has no lock")
    }
}

impl<C: Commits> Store<C> {
    /// Opens a home with bounds of the caller's choice, making it if there is none, and completes its logs.
    pub fn open_with(
        disk: SharedDisk,
        layout: Layout,
        opener: Opener,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Result<Store<C>, OpenError> {
        let disk = Arc::new(RetryDisk(disk)) as SharedDisk;
        home::prepare(&*disk, &layout)?;
        let lock = home::lock(&*disk, &layout, opener.pid, opener.boot_id)?;
        Store::open_locked(disk, layout, lock, clock, limits)
    }

    fn open_locked(
        disk: SharedDisk,
        layout: Layout,
        lock: HomeLock,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Result<Store<C>, OpenError> {
        home::upgrade(&*disk, &layout)?;
        let mut home = HomeFiles::new(disk, layout);
        let (wal, recovered, unfinished) = recover(&home, limits.segment_bytes)?;
        let machine = CommitMachine::new(home.clone(), limits, clock, wal, unfinished);
        let (meter, lagging) = (machine.meter.clone(), machine.lagging.clone());
        home.disk = Arc::new(LogOverlay {
            disk: home.disk.clone(),
            layout: home.layout.clone(),
            lagging: lagging.clone(),
            unwritten: machine.unwritten.clone(),
            read_only: false,
        });
        let (lock, writing) = (Arc::new(lock), Arc::default());
        let blobs = Blobs::new(home.disk.clone(), home.layout.clone(), Arc::clone(&writing));
        Ok(Store {
            committer: C::start(machine, lock.clone()).map_err(OpenError::Thread)?,
            unannounced: Mutex::new(announce::repairs(&recovered)),
            loading: StreamLocks::default(),
            keeping: StreamLocks::default(),
            list_compared: Mutex::default(),
            forks: Mutex::default(),
            writing,
            blobs,
            observers: Observers::default(),
            lock,
            home,
            lagging,
            recovered,
            meter,
        })
    }

    /// Returns where everything streams.
    pub fn layout(&self) -> &Layout {
        &self.home.layout
    }

    /// Tells whether the home is a copy of another.
    pub fn origin(&self) -> Origin {
        self.lock.origin
    }

    /// Returns which home it is.
    pub fn home_id(&self) -> HomeId {
        self.lock.id
    }

    /// Returns what opening found and did.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Returns what is counted.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns why a session's log lacks records that were committed; none if it has all of them. They are served from memory,
    /// and written when that can be done.
    pub fn lagging(&self, session: SessionId) -> Option<String> {
        self.lagging.get(session.into()).map(|lag| lag.why)
    }

    /// Gives up the room that is kept for the records that end work, for a file without which nobody could give such an order.
    /// Until the room can be had again nothing else is recorded.
    pub fn make_room(&self) {
        self.committer.make_room();
    }

    /// Returns the blobs.
    pub fn blobs(&self) -> Blobs {
        self.blobs.clone()
    }

    /// Returns the committer.
    pub fn committer(&self) -> &C {
        &self.committer
    }

    /// Makes a new session ready to be appended to; its first record must be `session.created`.
    pub fn create(&self, session: SessionId) -> io::Result<()> {
        if self.home.disk.stat(&self.home.log(session)).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("session {session} already exists"),
            ));
        }
        let fold = SessionFold::new(SessionState::empty(session), TokenIndex::empty(session));
        self.committer.register(fold, None);
        Ok(())
    }

    /// Makes a session ready to be appended to: loads it, checks its log from the beginning, and cuts off what a crash
    /// left at its end. Nothing is ever added behind damage, where nobody would find it again.
    pub fn open_session(&self, session: SessionId) -> Result<Current, OpenSessionError> {
        if let Some(current) = self.current(session) {
            self.announce_late(session);
            return Ok(current);
        }
        self.home.check_quarantine(session)?;
        let _at_work = at_work(session, "load");
        let _loaded_once = self.loading.lock(session.into());
        if let Some(current) = self.current(session) {
            return Ok(current);
        }
        let mut loaded = load_logged(&self.home, session, Want::Everything, Effort::FULL)?;
        if loaded.damage.is_none() {
            loaded.damage = self.broken_before(session, Cursor::at(loaded.read_from))?;
        }
        let mut kept = None;
        if let (Some(torn), None) = (loaded.torn, &loaded.damage) {
            kept = self.save_torn_as_blob(session, torn)?;
            self.cut_torn(&self.home.log(session), torn)?;
        }
        let fold = SessionFold::new(loaded.state.clone(), loaded.tokens.clone());
        self.committer.register(fold, loaded.damage.clone());
        if !loaded.unlogged.is_empty() && loaded.damage.is_none() {
            // Before anything else, and before the file is ever written as the cache that it then is.
            let records = std::mem::take(&mut loaded.unlogged);
            let logged = self.committer.append(Append::durable(session, records));
            logged.inspect_err(|_| self.committer.release(session.into()))?;
        }
        self.announce_repairs(session, &loaded, kept)?;
        self.current(session).ok_or(OpenSessionError::Append(AppendError::Closed))
    }

    /// Returns a session as of everything answered before, if it is open.
    pub fn current(&self, session: SessionId) -> Option<Current> {
        self.stream::<SessionFold>(session.into()).map(Current::from)
    }

    /// Makes a stream that is no session ready to be appended to: folds its log into `empty` and cuts off what a crash left
    /// at its end. One without a log begins with its first record; the directory of its log must be there.
    pub fn open_stream<F: Fold>(&self, empty: F) -> Result<Committed<F>, OpenSessionError> {
        self.open_stream_from(empty, None)
    }

    /// The same for a stream of which a cache says what its records amount to, up to some of them.
    fn open_stream_from<F: Fold>(
        &self,
        empty: F,
        cached: Option<F>,
    ) -> Result<Committed<F>, OpenSessionError> {
        let stream = empty.stream();
        let _loaded_once = self.loading.lock(stream);
        if let Some(committed) = self.stream(stream) {
            return Ok(committed);
        }
        let loaded = load_stream(&self.home, empty, cached)?;
        if let (Some(torn), None) = (loaded.torn, &loaded.damage) {
            self.cut_torn(&self.home.stream_log(stream), torn)?;
        }
        self.committer.register_as(loaded.fold, loaded.damage, loaded.form);
        self.stream(stream).ok_or(OpenSessionError::Append(AppendError::Closed))
    }

    /// Cuts off what a crash left at the end of a log. Need not be durable: the first append makes the write-ahead log say where
    /// the log ends.
    fn cut_torn(&self, path: &Path, torn: Torn) -> Result<(), PathError> {
        let log = self.home.disk.open(path, OpenMode::Write);
        log.and_then(|log| log.set_len(torn.offset)).at_path("write", path)
    }

    /// Returns a stream as of everything answered before, if it is open and its fold is of this type.
    pub fn stream<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        self.committer.current(stream)
    }

    /// Returns where the log of a session ends, as of its state.
    pub fn end_of(&self, state: &SessionState) -> Cursor {
        Cursor::at(state.position().log_offset)
    }

    /// Returns how many bytes the log of a session takes, as of its state.
    pub fn log_size(&self, state: &SessionState) -> u64 {
        state.position().log_offset
    }

    /// Reads a session's log up to `end` and finds where it is damaged.
    pub fn broken_before(&self, session: SessionId, end: Cursor) -> Result<Option<Damage>, LoadError> {
        self.home.check_quarantine(session)?;
        let _at_work = at_work(session, "load");
        let found = match end {
            Cursor::START => Ok(None),
            _ => self.reader(session).and_then(|reader| broken_before(&reader, session, end.offset())),
        };
        Ok(found.at_path("read", &self.home.log(session))?)
    }

    /// Lets go of a session that is not needed for a while.
    pub fn close_session(&self, session: SessionId) {
        self.committer.release(session.into());
    }

    /// Has the committer woken for an append that is about to come.
    pub fn expect_append(&self) {
        self.committer.expect_append();
    }

    /// Appends and waits; returns where the records of the append's own stream are.
    pub fn append(&self, append: Append) -> Result<Receipt, AppendError> {
        self.append_together(append).map(|receipts| receipts.first)
    }

    /// Appends to several logs, all or none, and waits.
    pub fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        let audience = self.observers.of(&append);
        let receipts = self.committer.append_together(append)?;
        audience.committed(&receipts);
        audience.answered(&receipts);
        Ok(receipts)
    }

    /// Has someone told of every append from now on.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.add(observer);
    }

    /// Writes a session's token index and snapshot, once everything they say is on disk. Returns the
    /// snapshot's size.
    pub fn snapshot(&self, session: SessionId) -> Result<u64, OpenSessionError> {
        self.open_session(session)?;
        // Behind whatever was handed over before, also if nobody has waited for the answer.
        self.committer.sync()?;
        let current = self.current(session).ok_or(AppendError::Closed)?;
        self.committer.sync()?;
        let _one_at_a_time = locked(&self.writing);
        let written = write_caches(&self.home, &current);
        Ok(written.at_path("write", &self.home.snapshot(session))?)
    }

    /// Writes a session's caches if it was opened and they are not what it is by now; tells whether they were written.
    pub fn renew_snapshot(&self, session: SessionId) -> Result<bool, OpenSessionError> {
        let Some(current) = self.current(session) else { return Ok(false) };
        let known = cache::read::<SessionState>(&*self.home.disk, &self.home.snapshot(session))?;
        let same = |known: &SessionState| known.position() == current.state.position();
        if current.damage.is_some() || matches!(&known, Cached::Good(known) if same(known)) {
            return Ok(false);
        }
        self.snapshot(session).map(|_| true)
    }

    /// Removes the files of a session whose deletion is recorded.
    pub fn remove(&self, session: SessionId) -> io::Result<()> {
        // One that is removed in order is not to be taken for one that was lost.
        self.await_list_compared()?;
        match load(&self.home, session, Want::Status) {
            Err(error @ LoadError::Quarantined { .. }) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, error))
            }
            Ok(loaded) if !loaded.state.deleted && self.current(session).is_none() => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "the session's deletion is not recorded"))
            }
            _ => {
                self.keep_history_for_forks(session)?;
                let _none_is_kept = self.keeping.lock(session.into());
                self.committer.remove(session)
            }
        }
    }

    /// Sets the files of a damaged session aside, where no session is looked for, and tells where.
    pub fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        self.keep_history_for_forks(session)?;
        let _none_is_kept = self.keeping.lock(session.into());
        self.committer.set_aside(session)
    }

    /// Returns why a session is quarantined, if it is: nothing of it is read, and nothing added to it.
    pub fn quarantine(&self, session: SessionId) -> Option<Arc<Quarantine>> {
        self.home.quarantined.get(session)
    }

    /// Has a session used again that made daemons crash, and forgets that it did; tells whether there was anything to forget.
    pub fn release_quarantine(&self, session: SessionId) -> Result<bool, PathError> {
        let removed = crash_report::remove(&*self.home.disk, &self.home, session);
        let removed = removed.at_path("remove", &self.home.crash_report(session))?;
        self.home.quarantined.release(session);
        Ok(removed)
    }

    /// Opens a session's log for reading, unless it is quarantined.
    pub fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        self.home.reader(session)
    }

    /// Follows a session's log from an offset on.
    pub fn follower(&self, session: SessionId, from: Cursor) -> Follower {
        Follower::new(self.home.disk.clone(), self.home.log(session), self.home.codec(), from)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these guard is changed in single steps: a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// More open logs than this make a checkpoint too long.
const MOST_OPEN_LOGS: usize = 4096;

/// Why a session could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum OpenSessionError {
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What a crash left at its end cannot be cut off, or a cache cannot be written.
    #[error(transparent)]
    Write(#[from] PathError),
    /// The repair cannot be recorded.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Writes the caches of a session: tokens first, because a snapshot must not be ahead of them.
fn write_caches(home: &HomeFiles, current: &Current) -> io::Result<u64> {
    let session = current.state.id;
    if current.state.token_records > 0 {
        cache::write(&*home.disk, &home.tokens(session), &*current.tokens)?;
    }
    cache::write(&*home.disk, &home.snapshot(session), &*current.state)
}
