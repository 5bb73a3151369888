//! Shared results of steps on their way into a bundle: those that are there of the steps of its runs, each with the tree that it left.

use std::collections::HashSet;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{Member, MemberName};
use rekindle_domain::id::RunName;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::cached_result::cache_directory;
use rekindle_store::step_cache::{Lookup, StepCache};

use super::super::BundleError;
use super::gather::{Gathered, Source};
use super::trees::Objects;

impl Gathered<'_> {
    /// Finds the shared results of a run's steps, and adds what they name to what the run does: it may be another run's result, that
    /// no ledger of the bundle names.
    pub(super) fn find_results(&mut self, run: RunName, state: &PipelineState, named: &mut HashSet<BlobId>) {
        let cache = StepCache::new(self.offline.disk().clone(), self.offline.layout().clone());
        for step in state.steps() {
            let stage = state.stage(&step.id.stage).map(|(_, stage)| stage);
            let Some(stage) = stage.filter(|stage| stage.cache) else { continue };
            match cache.find(cache_directory(stage), step.key) {
                Lookup::Missing => {}
                Lookup::Found(result) => {
                    named.insert(result.to);
                    named.extend(result.payload_blob.map(|payload| payload.blob));
                    self.results.insert(step.key, result);
                }
                Lookup::Bad { path, why } => {
                    let file = path.display();
                    self.notes.push(format!(
                        "the shared result of {} of {run} is not in the bundle: {file}: {why}",
                        step.id
                    ));
                }
            }
        }
    }

    /// Adds the shared results whose objects are in the bundle.
    pub(super) fn add_results(&mut self, objects: &Objects) -> Result<(), BundleError> {
        for (key, result) in std::mem::take(&mut self.results) {
            let payload = result.payload_blob.map(|payload| payload.blob);
            let has_payload = payload.is_none_or(|payload| objects.is_tree(&payload).is_some());
            if objects.is_tree(&result.to) != Some(true) || !has_payload {
                self.notes.push(format!("the shared result {key} is not in the bundle: its files are gone"));
                continue;
            }
            let bytes = result.write().map_err(|error| BundleError::unwritten(error.into()))?;
            let (size, hash) = (bytes.len() as u64, BlobId::of(&bytes));
            self.members
                .push((Member { name: MemberName::CachedResult(key), size, hash }, Source::Bytes(bytes)));
            self.results.insert(key, result);
        }
        Ok(())
    }
}
