//! The committer on its caller's thread: each call runs to its end, in order. Simulations use it, because it
//! has no clock and no scheduler in it, and tools that want nothing in the background.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::{SessionId, StreamId};

use super::core::Core;
use super::live::Live;
use super::{Append, Commits, Committed, Receipts, Reply};
use crate::error::AppendError;
use crate::fold::Fold;
use crate::log::Damage;

/// A committer without a thread.
pub struct Inline(Mutex<Core>);

impl Inline {
    pub(crate) fn new(core: Core) -> Inline {
        Inline(Mutex::new(core))
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits several appends as one group and returns their outcomes in order.
    pub fn append_all(&self, appends: Vec<Append>) -> Vec<Result<Receipts, AppendError>> {
        let outcomes = Arc::new(Mutex::new(vec![Err(AppendError::Closed); appends.len()]));
        let requests = appends.into_iter().enumerate().map(|(index, append)| {
            let outcomes = outcomes.clone();
            let reply = Reply::Call(Box::new(move |outcome| {
                outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = outcome;
            }));
            (append, reply)
        });
        let requests = requests.collect();
        let mut core = self.core();
        core.commit(requests);
        core.forget_spent();
        drop(core);
        let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.clone()
    }

    /// Does what a thread does after a while: syncs, tries again what failed, refills the reserve.
    pub fn tick(&self) {
        self.core().tick();
    }
}

impl Commits for Inline {
    fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        self.append_all(vec![append]).pop().unwrap_or(Err(AppendError::Closed))
    }

    fn register<F: Fold>(&self, fold: F, damage: Option<Damage>) {
        self.core().register(Live::new(fold, damage));
    }

    fn release(&self, stream: StreamId) {
        self.core().release(stream);
    }

    fn current<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        self.core().current(stream)
    }

    fn sync(&self) -> Result<(), AppendError> {
        self.core().sync()
    }

    fn checkpoint(&self) -> io::Result<()> {
        self.core().checkpoint().map_err(io::Error::other)
    }

    fn make_room(&self) {
        self.core().make_room();
    }

    fn remove(&self, session: SessionId) -> io::Result<()> {
        self.core().remove(session)
    }

    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        self.core().set_aside(session)
    }
}
