//! Observers of a store: told of every append that succeeded, each for itself. One that comes late, or misses something,
//! catches up by reading the log behind the last number that it knows.

use std::sync::{Arc, PoisonError, RwLock};

use rekindle_domain::id::StreamId;

use crate::commit::{Append, Receipt, Receipts};

/// Someone who is told of every append that succeeded: must not block.
pub trait Observer: Send + Sync {
    /// It is done, and whoever made it does not know yet.
    fn done(&self, stream: StreamId, receipt: &Receipt);
    /// Whoever made it is being told.
    fn told(&self, stream: StreamId, receipt: &Receipt);
}

/// All observers of a store.
#[derive(Default)]
pub(crate) struct Observers(RwLock<Arc<[Arc<dyn Observer>]>>);

/// Those who are to be told of an append, and which streams it touches.
pub(crate) struct Audience {
    observers: Arc<[Arc<dyn Observer>]>,
    first: StreamId,
    more: Vec<StreamId>,
}

impl Observers {
    /// Adds one, who is told of every append from now on.
    pub(crate) fn add(&self, observer: Arc<dyn Observer>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().cloned().chain([observer]).collect();
    }

    /// Returns who is told of an append.
    pub(crate) fn of(&self, append: &Append) -> Audience {
        let observers = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let more = append.more.iter().map(|part| part.stream).collect();
        Audience { observers, first: append.stream, more }
    }
}

impl Audience {
    /// Says that the append is done.
    pub(crate) fn done(&self, receipts: &Receipts) {
        self.each(receipts, |observer, stream, receipt| observer.done(stream, receipt));
    }

    /// Says that whoever made it is being told.
    pub(crate) fn told(&self, receipts: &Receipts) {
        self.each(receipts, |observer, stream, receipt| observer.told(stream, receipt));
    }

    fn each(&self, receipts: &Receipts, tell: impl Fn(&dyn Observer, StreamId, &Receipt)) {
        for observer in &*self.observers {
            tell(&**observer, self.first, &receipts.first);
            for (stream, receipt) in self.more.iter().zip(&receipts.more) {
                tell(&**observer, *stream, receipt);
            }
        }
    }
}
