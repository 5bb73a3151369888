//! The committer on its caller's thread: each call runs to its end, in order. Simulations use it, because it
//! has no clock and no scheduler in it, and tools that want nothing in the background.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::machine::CommitMachine;
use super::{Append, Call, Commits, Receipts, Reply};
use crate::error::AppendError;
use crate::home::HomeLock;

/// A committer without a thread.
pub struct Inline(Mutex<CommitMachine>);

impl Inline {
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
    fn start(machine: CommitMachine, _lock: Arc<HomeLock>) -> io::Result<Inline> {
        Ok(Inline(Mutex::new(machine)))
    }

    fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        self.append_all(vec![append]).pop().unwrap_or(Err(AppendError::Closed))
    }

    fn post(&self, call: Call) {
        call(&mut self.machine());
    }
}
