//! The committer on its caller's thread: each call runs to its end, in order. Simulations use it, because it
//! has no clock and no scheduler in it, and tools that want nothing in the background.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::{SessionId, StreamId};

use super::machine::CommitMachine;
use super::open_stream::OpenStream;
use super::{Append, Commits, Committed, Receipts, Reply};
use crate::error::AppendError;
use crate::fold::Fold;
use crate::log::Damage;

/// A committer without a thread.
pub struct Inline(Mutex<CommitMachine>);

impl Inline {
    pub(crate) fn new(machine: CommitMachine) -> Inline {
        Inline(Mutex::new(machine))
    }

    fn machine(&self) -> MutexGuard<'_, CommitMachine> {
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
        let mut machine = self.machine();
        machine.commit(requests);
        machine.drop_answered();
        drop(machine);
        let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.clone()
    }

    /// Does what a thread does after a while: syncs, tries again what failed, refills the reserve.
    pub fn tick(&self) {
        self.machine().tick();
    }
}

impl Commits for Inline {
    fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        self.append_all(vec![append]).pop().unwrap_or(Err(AppendError::Closed))
    }

    fn register<F: Fold>(&self, fold: F, damage: Option<Damage>) {
        self.machine().register(OpenStream::new(fold, damage));
    }

    fn release(&self, stream: StreamId) {
        self.machine().release(stream);
    }

    fn current<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        self.machine().current(stream)
    }

    fn sync(&self) -> Result<(), AppendError> {
        self.machine().sync()
    }

    fn checkpoint(&self) -> io::Result<()> {
        self.machine().checkpoint().map_err(io::Error::other)
    }

    fn make_room(&self) {
        self.machine().make_room();
    }

    fn remove(&self, session: SessionId) -> io::Result<()> {
        self.machine().remove(session)
    }

    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        self.machine().set_aside(session)
    }
}
