//! Published streams: what they were as of everything that was answered, for all who look. Nobody waits for the committer to
//! see one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use rekindle_domain::id::StreamId;

use super::Committed;
use super::open_streams::OpenStreams;
use crate::fold::Fold;
use crate::log::Damage;

/// A stream that was written to this often since someone last looked is not published any more: each time it costs a copy.
const FORGOTTEN_AFTER: u32 = 256;

/// A stream as it is published.
struct PublishedStream {
    fold: Box<dyn Any + Send>,
    damage: Option<Arc<Damage>>,
    /// How often it was replaced since someone looked.
    unseen: u32,
}

/// The published streams: those that someone asked for.
#[derive(Default)]
pub(crate) struct Published {
    streams: Mutex<HashMap<StreamId, PublishedStream, RandomState>>,
}

impl Published {
    /// Returns a stream if it is published.
    pub(super) fn get<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        let mut all = self.lock();
        let published = all.get_mut(&stream)?;
        published.unseen = 0;
        Some(Committed {
            fold: published.fold.downcast_ref::<F>()?.clone(),
            damage: published.damage.clone(),
        })
    }

    /// Publishes a stream from now on.
    pub(super) fn publish<F: Fold>(&self, committed: Committed<F>) {
        let Committed { fold, damage } = committed;
        self.lock().insert(fold.stream(), PublishedStream { fold: Box::new(fold), damage, unseen: 0 });
    }

    /// Publishes those that are published as they are by now.
    pub(super) fn refresh(&self, changed: impl Iterator<Item = StreamId>, streams: &OpenStreams) {
        let mut all = self.lock();
        if all.is_empty() {
            return;
        }
        for stream in changed {
            let Some(published) = all.get_mut(&stream) else { continue };
            match streams.get(stream).filter(|_| published.unseen < FORGOTTEN_AFTER) {
                Some(open) => {
                    open.fold.copy_to(&mut *published.fold);
                    published.damage.clone_from(&open.damage);
                    published.unseen += 1;
                }
                None => drop(all.remove(&stream)),
            }
        }
    }

    /// Publishes a stream no longer.
    pub(super) fn withdraw(&self, stream: StreamId) {
        self.lock().remove(&stream);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, PublishedStream, RandomState>> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
