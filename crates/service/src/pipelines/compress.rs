//! Ledgers of runs that have ended: nothing is added to them any more, so they are kept compressed. One that is reopened is decompressed
//! before its next record.

use std::sync::Arc;

use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::config_change::Refusal;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::commit::Committed;

use super::{Command, Pipelines, refusal};
use crate::error::{Result, chain};

impl Pipelines {
    /// Keeps the ledger of a run compressed that has ended, and of which nothing goes on. What cannot be done now is done after the next
    /// start.
    pub(super) fn compress(&self, state: &PipelineState) {
        if state.status == RunStatus::Running || self.views.workers.is_superseded() {
            return;
        }
        let name = state.id.to_string();
        let _nobody_reopens = self.compressing.lock(&name);
        if let Err(error) = self.store.compress_ledger(state) {
            tracing::warn!(run = %state.id, "its ledger is not compressed: {error}");
        }
    }

    /// A run was taken in from a bundle: somebody looks at it, and nothing of it goes on.
    pub(crate) fn take_in(self: &Arc<Pipelines>, id: PipelineId) {
        if let Err(error) = self.send(id, Command::Look) {
            tracing::warn!(run = %id, "it cannot be checked: {}", error.text());
        }
    }

    /// Compresses the ledgers of runs that have ended and whose daemon died before that, and clears away what one left that died over it;
    /// returns at the first sign that this one leaves.
    pub(crate) fn compress_ended(&self) {
        let Ok(listed) = self.store.pipelines() else { return };
        for id in listed.runs.into_iter().map(|name| name.pipeline_id()) {
            if self.views.workers.is_stopping() {
                return;
            }
            if let Err(error) = self.store.clear_leftovers(id) {
                tracing::debug!(run = %id, "leftover files beside its ledger cannot be removed: {error}");
            }
            // Whoever works at a run does it at the end.
            if self.pool.get(id).is_some() || self.store.is_compressed(id).unwrap_or(true) {
                continue;
            }
            let is_open = self.store.pipeline(id).is_some();
            match self.store.open_pipeline(id) {
                // Of a step that was at work when its run ended a worker knows whether it is.
                Ok(Some(opened)) if opened.damage.is_none() && !is_at_work(&opened.fold) => {
                    self.compress(&opened.fold);
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(run = %id, "not compressed: {}", chain(&error)),
            }
            if !is_open && self.pool.get(id).is_none() {
                self.store.close_pipeline(id);
            }
        }
    }

    /// Has `append` add to the ledger of a run that has ended, which is decompressed before.
    pub(super) fn with_reopened(
        &self,
        id: PipelineId,
        append: impl FnOnce(&Committed<PipelineState>) -> Result<()>,
    ) -> Result<()> {
        let name = id.to_string();
        let _nobody_compresses = self.compressing.lock(&name);
        let opened = self.store.reopen_pipeline(id)?;
        append(&opened.ok_or_else(|| refusal(&Refusal::RunUnknown))?)
    }
}

fn is_at_work(state: &PipelineState) -> bool {
    state.current_step().is_some_and(|step| step.open_attempt().is_some())
}
