//! The records of a home: the store that keeps them, and the clocks by which they are dated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::time::{Clock, Now, Timestamp};
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Receipt};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::boottime::BootClock;
use crate::error::Result;
use crate::storage::Sessions;
use crate::test_knobs::crash_point;

/// Appends under way for whom no thread waits. The committer's queue is some times longer: whoever serves connections never
/// waits for room in it, also if the disk hangs and callers come again and again.
const UNATTENDED: usize = 1024;

/// How long the thread that serves connections stays awake for an append that nobody else waits beside: some twice what a sync takes.
/// To put it to sleep and wake it again costs as much as half a sync where a processor has to be woken for it, too. Whatever comes
/// meanwhile is served.
const AWAKE: Duration = Duration::from_micros(200);

/// The store and the clocks of a daemon.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) store: Arc<dyn Sessions>,
    clock: Arc<dyn Clock>,
    steady: BootClock,
    under_way: Arc<AtomicUsize>,
}

impl Records {
    pub(crate) fn new(store: Arc<dyn Sessions>, clock: Arc<dyn Clock>, steady: BootClock) -> Records {
        Records { store, clock, steady, under_way: Arc::default() }
    }

    /// Appends records; what must survive a power cut is on disk before anyone is told.
    pub(crate) fn append(&self, session: SessionId, records: Vec<Draft>) -> Result<Receipt> {
        crash_point("append.before");
        let receipt = self.store.append(Append::as_needed(session, records))?;
        crash_point("append.after");
        Ok(receipt)
    }

    /// Tells whether an append can be begun without waiting for room.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) < UNATTENDED
    }

    /// Begins to append. What follows from it is done even if whoever asked goes away, and by the committer: it must not
    /// block.
    pub(crate) fn begin_append(&self, append: Append, then: impl FnOnce() + Send + 'static) -> Appending {
        let (tell, appended) = oneshot::channel();
        crash_point("append.before");
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let (under_way, ends) = (self.under_way.clone(), self.under_way.clone());
        let told = move |outcome: Result<Receipt, AppendError>| {
            ends.fetch_sub(1, Ordering::Relaxed);
            let done = outcome.is_ok();
            crash_point("append.after");
            drop(tell.send(outcome));
            if done {
                crash_point("append.told");
                then();
            }
        };
        self.store.append_with(append, Box::new(told));
        Appending { appended, under_way }
    }

    /// Returns the time by both clocks.
    pub(crate) fn time(&self) -> Now {
        Now { wall: self.now(), steady: self.steady.now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

/// An append on its way to the disk.
pub(crate) struct Appending {
    appended: oneshot::Receiver<Result<Receipt, AppendError>>,
    /// How many there are.
    under_way: Arc<AtomicUsize>,
}

impl Appending {
    /// Waits until it is there, on a thread that may block.
    pub(crate) fn wait(self) -> Result<Receipt> {
        Ok(self.appended.blocking_recv().unwrap_or(Err(AppendError::Closed))?)
    }

    /// Waits until it is there, without keeping a thread.
    pub(crate) async fn done(mut self) -> Result<Receipt> {
        let since = Instant::now();
        // Of many, each would keep the others from being served.
        while self.under_way.load(Ordering::Relaxed) <= 1 && since.elapsed() < AWAKE {
            match self.appended.try_recv() {
                Ok(outcome) => return Ok(outcome?),
                Err(TryRecvError::Closed) => return Err(AppendError::Closed.into()),
                Err(TryRecvError::Empty) => tokio::task::yield_now().await,
            }
        }
        Ok(self.appended.await.unwrap_or(Err(AppendError::Closed))?)
    }
}
