//! The wake-up of the thread of tasks: what has happened since it last looked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rekindle_domain::id::{SessionId, StreamId};

use crate::lock::locked;

/// Sessions that grow are looked at together, not more often than this.
const TOGETHER: Duration = Duration::from_millis(20);

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    /// Sessions that are not what they were.
    pub(super) sessions: BTreeSet<SessionId>,
    /// Tasks were asked for or changed.
    pub(super) tasks: bool,
    /// Nobody needs the thread any more.
    pub(super) stop: bool,
}

/// Tells the thread of tasks that something has happened. Cheap while there are neither tasks nor budgets.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    happened: Mutex<Happened>,
    bell: Condvar,
    /// There are tasks that have not ended, or budgets: what sessions do matters.
    pub(super) sessions_matter: AtomicBool,
}

impl Wake {
    /// A stream has grown.
    pub(crate) fn grown(&self, stream: StreamId) {
        match stream.session() {
            None if stream == StreamId::tasks() => self.look(),
            None => {}
            Some(session) => self.changed(session),
        }
    }

    /// A session is not what it was.
    pub(crate) fn changed(&self, session: SessionId) {
        if self.sessions_matter.load(Ordering::Relaxed) {
            locked(&self.happened).sessions.insert(session);
            self.bell.notify_one();
        }
    }

    /// Tasks are to be looked at.
    pub(crate) fn look(&self) {
        locked(&self.happened).tasks = true;
        self.bell.notify_one();
    }

    /// The thread is to leave.
    pub(crate) fn stop(&self) {
        locked(&self.happened).stop = true;
        self.bell.notify_one();
    }

    /// Waits until something has happened, or for so long, and returns what has.
    pub(super) fn wait(&self, most: Duration) -> Happened {
        let (begin, mut happened) = (Instant::now(), locked(&self.happened));
        loop {
            let ready = happened.tasks || happened.stop;
            let patience = if happened.sessions.is_empty() { most } else { most.min(TOGETHER) };
            let left = patience.saturating_sub(begin.elapsed());
            if ready || left.is_zero() {
                return std::mem::take(&mut happened);
            }
            happened = self.bell.wait_timeout(happened, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
