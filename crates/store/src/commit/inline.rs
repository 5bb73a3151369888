//! The committer on its caller's thread: each call runs to its end, in order. Simulations use it, because it
//! has no clock and no scheduler in it, and tools that want nothing in the background.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::machine::CommitMachine;
use super::{Answer, Append, Call, Commits, Receipts, Reply, Slot};
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
        let slots: Arc<[Slot]> = appends.iter().map(|_| Slot::default()).collect();
        let replies = (0..slots.len()).map(|index| Reply::Slot(slots.clone(), index));
        let mut machine = self.machine();
        machine.commit(appends.into_iter().zip(replies).collect());
        machine.finish_log_writes();
        machine.drop_answered();
        machine.advance_checkpoint();
        slots.iter().map(|slot| slot.take().map_or(Err(AppendError::Closed), Answer::into_outcome)).collect()
    }

    /// Does what a thread does after a while: syncs, tries again what failed, refills the reserve.
    pub fn tick(&self) {
        let mut machine = self.machine();
        machine.tick();
        machine.advance_checkpoint();
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
