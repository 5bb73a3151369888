//! The inbox of the manager of snapshots: what is appended to logs is noted here, and its thread waits here for something to do.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;
use rekindle_domain::kept_snapshot::Activity;
use rekindle_store::Observer;
use rekindle_store::commit::Receipt;

use super::unsaved::Unsaved;
use crate::lock::locked;

/// Where appends are noted. It knows of no store: whoever appends never waits for a snapshot.
#[derive(Debug, Default)]
pub(crate) struct SnapshotInbox {
    noted: Mutex<Noted>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Noted {
    unsaved: Unsaved,
    closed: bool,
}

impl SnapshotInbox {
    /// Changes what is noted.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Unsaved) -> T) -> T {
        change(&mut locked(&self.noted).unsaved)
    }

    /// Waits until there is something to do; tells that nothing will be done any more.
    pub(super) fn wait(&self) -> bool {
        let mut noted = locked(&self.noted);
        loop {
            if noted.closed {
                return false;
            }
            let now = Instant::now();
            noted = match noted.unsaved.next(now) {
                Some(due) if due <= now => return true,
                Some(due) => {
                    let waited = self.woken.wait_timeout(noted, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.woken.wait(noted).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Rests, unless nothing will be done any more.
    pub(super) fn rest(&self, most: Duration) {
        let is_open = |noted: &mut Noted| !noted.closed;
        drop(self.woken.wait_timeout_while(locked(&self.noted), most, is_open));
    }

    /// Ends the waiting.
    pub(super) fn close(&self) {
        locked(&self.noted).closed = true;
        self.woken.notify_all();
    }
}

impl Observer for SnapshotInbox {
    fn committed(&self, _: StreamId, _: &Receipt) {}

    fn answered(&self, _: StreamId, _: &Receipt) {}

    fn happened(&self, stream: StreamId, _: &Receipt, activity: Activity) {
        let Some(session) = stream.session().filter(|_| activity.is_worth_keeping) else { return };
        if locked(&self.noted).unsaved.note(session, activity) {
            self.woken.notify_one();
        }
    }
}
