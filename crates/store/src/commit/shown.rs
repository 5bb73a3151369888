//! Streams as of everything that was answered, for all who look: nobody waits for the committer to see one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::StreamId;

use super::Committed;
use super::lives::Lives;
use crate::fold::Fold;
use crate::log::Damage;

/// A stream that was written to this often since someone last looked is not shown any more: each time it costs a copy.
const FORGOTTEN_AFTER: u32 = 256;

struct Case {
    fold: Box<dyn Any + Send>,
    damage: Option<Arc<Damage>>,
    /// How often it was replaced since someone looked.
    unseen: u32,
}

/// What is shown. Only streams that someone asked for are.
#[derive(Default)]
pub(crate) struct Shown {
    cases: Mutex<HashMap<StreamId, Case>>,
}

impl Shown {
    /// Returns a stream if it is shown.
    pub(super) fn get<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        let mut cases = self.lock();
        let case = cases.get_mut(&stream)?;
        case.unseen = 0;
        Some(Committed { fold: case.fold.downcast_ref::<F>()?.clone(), damage: case.damage.clone() })
    }

    /// Shows a stream from now on.
    pub(super) fn show<F: Fold>(&self, committed: Committed<F>) {
        let Committed { fold, damage } = committed;
        self.lock().insert(fold.stream(), Case { fold: Box::new(fold), damage, unseen: 0 });
    }

    /// Shows those that are shown as they are by now.
    pub(super) fn renew(&self, streams: impl Iterator<Item = StreamId>, lives: &Lives) {
        let mut cases = self.lock();
        if cases.is_empty() {
            return;
        }
        for stream in streams {
            let Some(case) = cases.get_mut(&stream) else { continue };
            match lives.get(stream).filter(|_| case.unseen < FORGOTTEN_AFTER) {
                Some(live) => {
                    live.fold.copy_to(&mut *case.fold);
                    case.damage.clone_from(&live.damage);
                    case.unseen += 1;
                }
                None => drop(cases.remove(&stream)),
            }
        }
    }

    /// Shows a stream no longer.
    pub(super) fn hide(&self, stream: StreamId) {
        self.lock().remove(&stream);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Case>> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
