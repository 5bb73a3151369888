//! Staged results of steps are looked at: each is one that a step of a run of the bundle may have come to, whole, with its tree, or it is
//! left out and said to be. They are caches: what is wrong with one is no reason to refuse a run.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::StageConfig;
use rekindle_domain::id::StepKey;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::cached_result::{CachedResult, cache_directory};
use rekindle_store::layout::Layout;
use rekindle_store::step_cache::{Lookup, StepCache};
use serde::{Deserialize, Serialize};

use super::super::verify_trees::WholeTrees;
use super::Staged;

/// Results of steps that runs share, as they are imported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportedResults {
    /// Those that come here.
    pub imported: Vec<ImportedResult>,
    /// Those that are here already.
    pub known: Vec<StepKey>,
    /// Those that stay behind.
    pub left_out: Vec<LeftOut>,
}

/// A result that comes here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedResult {
    /// The key of its step.
    pub key: StepKey,
    /// Whose it is, by the name of the directory that it goes to.
    pub agent: String,
}

/// A result that stays behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The key of its step.
    pub key: StepKey,
    /// Why.
    pub why: String,
}

/// A step of a run of the bundle whose result is shared.
pub(super) struct SharedStep {
    stage: StageConfig,
    from: BlobId,
}

/// Returns the steps of a run whose results are shared.
pub(super) fn shared_steps(state: &PipelineState) -> impl Iterator<Item = (StepKey, SharedStep)> {
    state.steps().filter_map(|step| {
        let (_, stage) = state.stage(&step.id.stage).filter(|(_, stage)| stage.cache)?;
        Some((step.key, SharedStep { stage: stage.clone(), from: step.from }))
    })
}

impl Staged {
    /// Looks at each staged result, and tells what becomes of it.
    pub(super) fn prepare_results(&mut self, steps: &BTreeMap<StepKey, SharedStep>, trees: &mut WholeTrees) {
        let cache = StepCache::new(self.disk.clone(), self.layout.clone());
        for key in self.contents.cached_results() {
            match self.look_at_result(&cache, key, steps.get(&key), trees) {
                Ok(Some(imported)) => self.results.imported.push(imported),
                Ok(None) => self.results.known.push(key),
                Err(why) => self.results.left_out.push(LeftOut { key, why }),
            }
        }
    }

    /// Returns where a result goes, or that the same is here already, or why it stays behind.
    fn look_at_result(
        &self,
        cache: &StepCache,
        key: StepKey,
        step: Option<&SharedStep>,
        trees: &mut WholeTrees,
    ) -> Result<Option<ImportedResult>, String> {
        let step = step.ok_or("no run in the bundle has a step that shares it")?;
        let path = Layout::new(self.directory()).cached_results().join(key.file_name());
        let result = match cache.look_at(path, key) {
            Lookup::Found(result) => result,
            Lookup::Missing => return Err("it is not there".to_owned()),
            Lookup::Bad { why, .. } => return Err(why),
        };
        trees.check(&result.to).map_err(|why| format!("its files cannot be used: {why}"))?;
        if !result.payload_blob.is_none_or(|payload| trees.has(&payload.blob)) {
            return Err("what its agent said is not in the bundle".to_owned());
        }
        if !result.fits(&step.stage, step.from) {
            return Err(format!("its stage cannot have the outcome {:?} with these files", result.outcome));
        }
        let agent = cache_directory(&step.stage).to_owned();
        match cache.find(&agent, key) {
            Lookup::Found(here) if says_the_same(&here, &result) => Ok(None),
            Lookup::Found(here) => {
                Err(format!("another one already exists here, of {}, and stays", here.made_by))
            }
            Lookup::Missing | Lookup::Bad { .. } => Ok(Some(ImportedResult { key, agent })),
        }
    }
}

/// Tells whether two results of a step come to the same, whoever made them.
fn says_the_same(one: &CachedResult<'_>, other: &CachedResult<'_>) -> bool {
    (&one.outcome, &one.payload, one.payload_blob, one.to)
        == (&other.outcome, &other.payload, other.payload_blob, other.to)
}
