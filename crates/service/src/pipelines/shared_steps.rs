//! Steps whose results runs share: what is kept of them, and who makes one at this moment, so that the same is not made twice.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Mutex;

use rekindle_domain::event::StageConfig;
use rekindle_domain::id::{PipelineId, StepKey};
use rekindle_domain::pipeline::cached_result::{CachedResult, cache_directory};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::step_cache::{Lookup, StepCache};

use crate::lock::locked;

/// The steps that runs share.
pub(super) struct SharedSteps {
    cache: StepCache,
    /// Which key each run makes the result of.
    making: Mutex<HashMap<PipelineId, StepKey>>,
    /// Runs that were resumed with the wish to use no results of others: in memory only.
    apart: Mutex<HashSet<PipelineId>>,
    /// Files that were told to be damaged: once is enough.
    told: Mutex<HashSet<PathBuf>>,
    /// Held by whoever writes: two runs that use no results of others may come to the same key.
    writing: Mutex<()>,
}

impl SharedSteps {
    pub(super) fn new(disk: SharedDisk, layout: Layout) -> SharedSteps {
        SharedSteps {
            cache: StepCache::new(disk, layout),
            making: Mutex::default(),
            apart: Mutex::default(),
            told: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    /// Finds the result of a step, if it is whole. A file that is not is named in the log of the daemon, and passed over.
    pub(super) fn find(&self, stage: &StageConfig, key: StepKey) -> Option<CachedResult<'static>> {
        match self.cache.find(cache_directory(stage), key) {
            Lookup::Found(result) => Some(result),
            Lookup::Missing => None,
            Lookup::Bad { path, why } => {
                if locked(&self.told).insert(path.clone()) {
                    tracing::warn!("{} is ignored: {why}", path.display());
                }
                None
            }
        }
    }

    /// Keeps a result. It is none less of the run that made it if that fails.
    pub(super) fn keep(&self, stage: &StageConfig, result: &CachedResult<'_>) {
        let _one_at_a_time = locked(&self.writing);
        if let Err(error) = self.cache.keep(cache_directory(stage), result) {
            tracing::warn!(key = %result.key, "other runs will not find the result of the step: {error}");
        }
    }

    /// Notes that a run makes the result of a key, unless another one does; tells whose it is.
    pub(super) fn take(&self, run: PipelineId, key: StepKey) -> Result<(), PipelineId> {
        let mut making = locked(&self.making);
        match making.iter().find(|(other, made)| **other != run && **made == key) {
            Some((other, _)) => Err(*other),
            None => {
                making.insert(run, key);
                Ok(())
            }
        }
    }

    /// Returns the other run that makes the result of a key.
    pub(super) fn maker(&self, run: PipelineId, key: StepKey) -> Option<PipelineId> {
        let making = locked(&self.making);
        making.iter().find(|(other, made)| **other != run && **made == key).map(|(other, _)| *other)
    }

    /// A run makes nothing any more; tells whether it did.
    pub(super) fn release(&self, run: PipelineId) -> bool {
        locked(&self.making).remove(&run).is_some()
    }

    /// A run uses no results of others from now on.
    pub(super) fn set_apart(&self, run: PipelineId) {
        locked(&self.apart).insert(run);
    }

    /// Tells whether somebody said that a run uses no results of others.
    pub(super) fn is_apart(&self, run: PipelineId) -> bool {
        locked(&self.apart).contains(&run)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_testkit::sim::SimDisk;

    use super::*;

    #[test]
    fn a_key_is_made_by_one_run_at_a_time() {
        let steps = SharedSteps::new(Arc::new(SimDisk::new(1)), Layout::new("/home"));
        let [one, other] = [PipelineId::from_ulid(1), PipelineId::from_ulid(2)];
        let [key, next] = [StepKey::from_bytes([1; 32]), StepKey::from_bytes([2; 32])];
        assert_eq!((steps.take(one, key), steps.maker(one, key)), (Ok(()), None));
        assert_eq!(steps.take(one, key), Ok(()), "it makes it");
        assert_eq!((steps.take(other, key), steps.maker(other, key)), (Err(one), Some(one)));
        assert_eq!(steps.take(one, next), Ok(()), "it is at its next step");
        assert_eq!(steps.take(other, key), Ok(()));
        assert!(steps.release(one) && !steps.release(one));
        assert_eq!(steps.take(other, next), Ok(()));
    }
}
