//! What all services share: the store, who we are, where things live. Nothing is decided here.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::{HolderId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::{Clock, Now, Timestamp};
use rekindle_holder::dir::HolderDir;
use rekindle_store::commit::{Append, Receipt};
use rekindle_store::{AppendError, Store};

use crate::access::Access;
use crate::code::Code;
use crate::drive::live::{Places, Supervisor};
use crate::drive::worker::Workers;
use crate::error::ServiceError;
use crate::feed::Feed;
use crate::metrics::Metrics;
use crate::show::LastWords;
use crate::show::directory::Directory;
use crate::test_knobs::crash_point;

/// Values of environment variables, by name.
pub(crate) type Env = BTreeMap<String, String>;

pub(crate) struct Core {
    pub(crate) store: Arc<Store>,
    pub(crate) supervisor: Supervisor,
    pub(crate) places: Places,
    pub(crate) home: PathBuf,
    pub(crate) feed: Arc<Feed>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) last_words: LastWords,
    pub(crate) access: Arc<Access>,
    pub(crate) workers: Workers,
    pub(crate) clock: Arc<dyn Clock>,
    /// Our own environment, from which every agent's is built.
    pub(crate) env: Env,
    /// The umask of agents whose callers bring none.
    pub(crate) umask: u32,
    /// Held by whoever makes a session with a key.
    pub(crate) keyed: Mutex<()>,
    /// Held by whoever changes options of a session.
    pub(crate) options: Mutex<()>,
    /// What callers brought for their agents: in memory only.
    pub(crate) brought: Mutex<HashMap<SessionId, Env>>,
    /// We are not the home's supervisor any more.
    pub(crate) superseded: AtomicBool,
    /// Everything is to stop: nothing begins any more.
    pub(crate) stopping: AtomicBool,
    /// What was going on when we began has been looked at.
    pub(crate) recovered: AtomicBool,
    pub(crate) metrics: Metrics,
}

impl Core {
    /// Tells whether everything is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Appends records that must be on disk before anyone is told.
    pub(crate) fn append(&self, session: SessionId, records: Vec<Draft>) -> Result<Receipt, ServiceError> {
        crash_point("append.before");
        let receipt = self.store.append(Append::durable(session, records))?;
        crash_point("append.after");
        Ok(receipt)
    }

    /// Appends at once and without keeping a thread waiting. What follows from it is done even if whoever asked goes
    /// away, and by the committer: it must not block.
    pub(crate) fn append_soon(
        &self,
        append: Append,
        then: impl FnOnce() + Send + 'static,
    ) -> impl Future<Output = Result<Receipt, ServiceError>> + Send + 'static {
        let (tell, told) = tokio::sync::oneshot::channel();
        crash_point("append.before");
        self.store.append_with(append, move |outcome| {
            let done = outcome.is_ok();
            crash_point("append.after");
            drop(tell.send(outcome.map_err(ServiceError::from)));
            if done {
                crash_point("append.told");
                then();
            }
        });
        async move { told.await.unwrap_or_else(|_| Err(AppendError::Closed.into())) }
    }

    /// Returns the time by both clocks.
    pub(crate) fn time(&self) -> Now {
        Now { wall: self.now(), steady: self.supervisor.steady.now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn holder_dir(&self, holder: HolderId) -> HolderDir {
        HolderDir::new(self.places.holders.join(holder.to_string()))
    }

    /// Keeps what a caller brought, over what was brought before.
    pub(crate) fn bring(&self, session: SessionId, env: Env) {
        if !env.is_empty() {
            locked(&self.brought).entry(session).or_default().extend(env);
        }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these guard is changed in single steps: a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns 128 random bits for an id.
pub(crate) fn random() -> Result<u128, ServiceError> {
    Ok(u128::from_le_bytes(random_bytes()?))
}

/// Returns random bytes: those of an id, or the secret of a token.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], ServiceError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|_| ServiceError::new(Code::NoRandomness, "the system has no random numbers"))?;
    Ok(bytes)
}

/// Returns the time as ids have it.
pub(crate) fn millis(now: Timestamp) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(0)
}
