//! The semaphore of a pool: however many workers begin at once, few do what is costly.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::lock::locked;

/// How many are inside at a time.
const AT_ONCE: usize = 16;

/// A counting semaphore: lets a few through at a time.
#[derive(Default)]
pub(crate) struct Semaphore {
    inside: Mutex<usize>,
    freed: Condvar,
}

impl Semaphore {
    pub(crate) fn enter(&self) -> Permit<'_> {
        let inside = locked(&self.inside);
        let full = |inside: &mut usize| *inside >= AT_ONCE;
        let mut inside = self.freed.wait_while(inside, full).unwrap_or_else(PoisonError::into_inner);
        *inside += 1;
        Permit(self)
    }
}

/// A permit to be inside, until it is dropped.
pub(crate) struct Permit<'a>(&'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *locked(&self.0.inside) -= 1;
        self.0.freed.notify_one();
    }
}
