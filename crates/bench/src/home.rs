//! Homes to measure in: opened, and filled fast, by handing over appends without waiting for each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::commit::{Append, Commits};
use rekindle_store::disk::{RealDisk, SharedDisk};
use rekindle_store::{Opener, Store};

use crate::records;

/// The machine's clock.
pub(crate) struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Opens a home on the real disk.
pub(crate) fn open(home: &Path) -> anyhow::Result<Store> {
    open_on(Arc::new(RealDisk), home)
}

/// Opens a home on a given disk.
pub(crate) fn open_on(disk: SharedDisk, home: &Path) -> anyhow::Result<Store> {
    open_with(disk, home, Arc::new(WallClock))
}

/// Opens a home on a given disk, with a clock that may tell another time.
pub(crate) fn open_with(disk: SharedDisk, home: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Store> {
    let opener = Opener { pid: std::process::id(), boot_id: BootId::mint(0, 1) };
    Store::open(disk, home, opener, clock).context("cannot open the home")
}

/// Returns the id of the n-th session.
pub(crate) fn session_id(n: usize) -> SessionId {
    SessionId::mint(1_771_668_000_000 + n as u64, n as u128 + 1)
}

/// Makes sessions with nothing in them but their beginning and an agent.
pub(crate) fn make_sessions(store: &Store, count: usize) -> anyhow::Result<Vec<SessionId>> {
    let sessions: Vec<SessionId> = (0..count).map(session_id).collect();
    let filler = Filler::new(store);
    for session in &sessions {
        store.create(*session)?;
        filler.submit(Append::quick(*session, records::beginning()));
    }
    filler.finish()?;
    Ok(sessions)
}

/// Hands over appends without waiting for each; the end waits for all.
pub(crate) struct Filler<'a> {
    store: &'a Store,
    failed: Arc<AtomicU64>,
}

impl Filler<'_> {
    pub(crate) fn new(store: &Store) -> Filler<'_> {
        Filler { store, failed: Arc::default() }
    }

    pub(crate) fn submit(&self, append: Append) {
        let failed = self.failed.clone();
        self.store.committer().submit_with(append, move |outcome| {
            failed.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
        });
    }

    /// Hands over records one append each.
    pub(crate) fn submit_each(&self, session: SessionId, drafts: impl IntoIterator<Item = Draft>) {
        for draft in drafts {
            self.submit(Append::quick(session, vec![draft]));
        }
    }

    /// Waits until everything handed over is on disk.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        self.store.committer().sync()?;
        let failed = self.failed.load(Ordering::Relaxed);
        ensure!(failed == 0, "{failed} appends were refused");
        Ok(())
    }
}
