//! Results that were there before: found by the key of a step, used instead of an attempt, kept for other runs.

use std::path::Path;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{StageConfig, StepCounts, StepFinished};
use rekindle_domain::id::RunName;
use rekindle_domain::pipeline::cached_result::CachedResult;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_wire::code::Code;

use super::super::Pipelines;
use super::Worker;
use super::cache_lookup::Cached;
use super::carry_out::Outcome;
use super::observe::{Looked, Seen};
use super::stage::current;
use crate::drive::workspace_files::FilesError;
use crate::error::{Result, ServiceError};
use crate::test_knobs::crash_point;

impl Worker {
    /// Looks what is there of the result of the current step.
    pub(super) fn cached(&self, at: &Pipelines, state: &PipelineState) -> Cached {
        let Ok((started, step, stage)) = current(state) else { return Cached::Nothing };
        // Of a run that was aborted the step may go on for a moment: nobody waits for that.
        if !stage.cache || state.status != RunStatus::Running {
            return Cached::Nothing;
        }
        if step.open_attempt().is_some() {
            // Also after a restart: whoever wants the same waits for it.
            let _ = at.shared.take(self.id, step.key);
            return Cached::Nothing;
        }
        if started.no_cache || at.shared.is_apart(self.id) || self.passed_over == Some(step.key) {
            return Cached::Nothing;
        }
        let is_usable = |result: &CachedResult<'_>| {
            let said =
                result.payload_blob.is_none_or(|kept| at.store.blobs().contains(&kept.blob).unwrap_or(false));
            said && result.fits(stage, step.from) && at.trees.has(result.to)
        };
        // Asked first: whoever makes it no more has kept it before.
        let maker = at.shared.maker(self.id, step.key);
        match at.shared.find(stage, step.key).filter(is_usable) {
            Some(result) => Cached::Result(Box::new(result)),
            None => maker.map_or(Cached::Nothing, Cached::BeingMade),
        }
    }

    /// Notes that the run makes the result of the current step, which others may wait for.
    pub(super) fn take_step(&self, at: &Pipelines, state: &PipelineState) -> Result<()> {
        let (started, step, stage) = current(state)?;
        let is_shared = stage.cache && !started.no_cache && !at.shared.is_apart(self.id);
        if is_shared { at.shared.take(self.id, step.key).map_err(|_| ServiceError::moved()) } else { Ok(()) }
    }

    /// Makes the directory what a cached result left, and records that. Whoever dies in between finds files that are as the result left
    /// them, or on the way to that, and goes on.
    pub(super) fn use_cached(
        &mut self,
        at: &Pipelines,
        state: &PipelineState,
        (seen, found): (&Seen, &Looked),
    ) -> Result<Outcome> {
        let (started, step, _) = current(state)?;
        let Cached::Result(result) = &seen.cached else { return Err(ServiceError::moved()) };
        self.take_directory(at, &started.working_dir)?;
        let is_there = matches!(found, Looked::Captured { tree, .. } if *tree == result.to);
        if !is_there || seen.evidence.restoring.is_some() {
            let root = Path::new(&started.working_dir);
            if !self.restore_cached(at, root, result.to)? {
                self.passed_over = Some(step.key);
                return Ok(Outcome::Again);
            }
        }
        let finished = StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: result.outcome.clone(),
            payload: result.payload.clone(),
            payload_blob: result.payload_blob,
            to: result.to,
            files_touched: at.trees.touched(step.from, result.to).map(Box::new),
            usage: None,
            cached: true,
            counts: StepCounts::default(),
        };
        tracing::info!(step = %step.id, outcome = %finished.outcome, made_by = %result.made_by, "cached");
        self.record_finish(at, state, finished, None)?;
        self.word = None;
        Ok(Outcome::Again)
    }

    /// Makes a directory what a cached result left; tells whether that can be done. If not, no file was touched.
    fn restore_cached(&self, at: &Pipelines, root: &Path, tree: BlobId) -> Result<bool> {
        crash_point("pipeline.before_restore");
        match at.trees.restore(tree, root) {
            Ok(()) => {}
            Err(FilesError::Failed(why)) if at.trees.restoring(root).is_none() => {
                tracing::warn!("a cached result is not used, because its files are gone: {why}");
                return Ok(false);
            }
            Err(FilesError::NotYet(why) | FilesError::Failed(why)) => {
                let message = format!("the files of a cached result cannot be restored: {why}");
                return Err(ServiceError::new(Code::Storage, message));
            }
        }
        crash_point("pipeline.after_restore");
        let now = at.trees.capture(root).map_err(|why| ServiceError::new(Code::Storage, why))?;
        if now == tree {
            return Ok(true);
        }
        let message =
            "the files of a cached result were restored but differ again: another program is changing them";
        Err(ServiceError::new(Code::Storage, message))
    }

    /// Keeps the result of a step that was just recorded for other runs, and lets those go on that wait for it.
    pub(super) fn share(&self, at: &Pipelines, stage: &StageConfig, finished: &StepFinished<'_>) {
        if !stage.cache {
            return;
        }
        let now = at.views.workers.records.now();
        let result = RunName::of(self.id).and_then(|run| CachedResult::of(stage, finished, run, now));
        crash_point("pipeline.before_cache");
        if let Some(result) = result {
            at.shared.keep(stage, &result);
        }
        crash_point("pipeline.after_cache");
        if at.shared.release(self.id) {
            at.look_again();
        }
    }
}
