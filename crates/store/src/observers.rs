//! Observers of a store: told of every append that succeeded, each for itself. One that comes late, or misses something,
//! catches up by reading the log behind the last number that it knows.

use std::sync::{Arc, PoisonError, RwLock};

use rekindle_domain::id::StreamId;
use rekindle_domain::kept_snapshot::Activity;
use rekindle_domain::line::Draft;

use crate::commit::{Append, Receipt, Receipts};

/// An observer of a store, told of every append that succeeded: must not block.
pub trait Observer: Send + Sync {
    /// An append is committed, and whoever made it does not know yet.
    fn committed(&self, stream: StreamId, receipt: &Receipt);
    /// Whoever made it is being answered.
    fn answered(&self, stream: StreamId, receipt: &Receipt);
    /// Whoever made it has been answered; told what its records mean for those who follow.
    fn happened(&self, _stream: StreamId, _receipt: &Receipt, _activity: Activity) {}
}

/// All observers of a store.
#[derive(Default)]
pub(crate) struct Observers(RwLock<Arc<[Arc<dyn Observer>]>>);

/// The audience of an append: who is to be told of it, and which streams it touches.
pub(crate) struct Audience {
    observers: Arc<[Arc<dyn Observer>]>,
    first: (StreamId, Activity),
    more: Vec<(StreamId, Activity)>,
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
        let activity = |records: &[Draft]| Activity::of(records.iter().map(|draft| &draft.event));
        let more = append.more.iter().map(|part| (part.stream, activity(&part.records))).collect();
        Audience { observers, first: (append.stream, activity(&append.records)), more }
    }
}

impl Audience {
    /// Says that the append is committed.
    pub(crate) fn committed(&self, receipts: &Receipts) {
        self.each(receipts, |observer, (stream, _), receipt| observer.committed(stream, receipt));
    }

    /// Says that whoever made it is being answered.
    pub(crate) fn answered(&self, receipts: &Receipts) {
        self.each(receipts, |observer, (stream, activity), receipt| {
            observer.answered(stream, receipt);
            observer.happened(stream, receipt, activity);
        });
    }

    fn each(&self, receipts: &Receipts, tell: impl Fn(&dyn Observer, (StreamId, Activity), &Receipt)) {
        for observer in &*self.observers {
            tell(&**observer, self.first, &receipts.first);
            for (stream, receipt) in self.more.iter().zip(&receipts.more) {
                tell(&**observer, *stream, receipt);
            }
        }
    }
}
