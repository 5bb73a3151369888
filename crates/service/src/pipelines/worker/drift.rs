//! Files of a run that are not as its ledger expects them: what is decided about them is recorded before any of them is touched, and
//! told to whoever has to decide.

use rekindle_domain::event::PipelineDrift;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::compose;
use rekindle_domain::pipeline::next_step::{Decision, Rest};
use rekindle_wire::code::Code;
use rekindle_wire::view::PipelineDriftView;

use super::super::Pipelines;
use super::super::trees::{as_recorded, shown};
use super::Worker;
use super::observe::Looked;
use super::stage::current;
use crate::drive::environment::env_missing_text;
use crate::error::{Result, ServiceError};

/// Files that a sentence names.
const NAMED: usize = 10;

impl Worker {
    /// Records a decision about files that are not as expected.
    pub(super) fn decide(
        &mut self,
        at: &Pipelines,
        state: &PipelineState,
        found: &Looked,
        decision: Decision,
    ) -> Result<()> {
        let (_, step, _) = current(state)?;
        let Looked::Captured { tree, changed, foreign } = found else { return Err(ServiceError::moved()) };
        let blobs = at.store.blobs();
        let anew = decision.intend_anew.then(|| at.sources(&blobs).intention(state, &step.id, *tree));
        let anew = anew.transpose().map_err(|why| ServiceError::caused_by(Code::NotNow, why))?;
        let drift = PipelineDrift {
            step_id: step.id.clone(),
            expected: step.from,
            found: *tree,
            files: as_recorded(changed),
            after_cut: foreign.after_cut.clone(),
            unknown_author: foreign.unknown_author.clone(),
            decision: decision.what,
            by: self.word.as_ref().map(|(_, by)| by.clone().into()),
        };
        tracing::warn!(step = %step.id, files = changed.len(), decision = decision.what.as_str(), "drift");
        self.append(at, state, compose::decide_drift(drift, anew))
    }

    /// Shows files that are not as expected.
    pub(super) fn drift_view(&self, state: &PipelineState, found: &Looked) -> Option<PipelineDriftView> {
        let (Ok((_, step, _)), Looked::Captured { tree, changed, foreign }) = (current(state), found) else {
            return None;
        };
        Some(PipelineDriftView {
            expected: step.from,
            found: *tree,
            files: as_recorded(changed),
            after_cut: foreign.after_cut.clone(),
            unknown_author: foreign.unknown_author.clone(),
            decision: step.drift.map(|drift| drift.decision),
        })
    }

    /// Says why a run does not go on by itself, and what to do.
    pub(super) fn rest_text(
        &self,
        at: &Pipelines,
        state: &PipelineState,
        found: &Looked,
        why: Rest,
    ) -> String {
        let go_on = "resume the run to continue";
        match why {
            Rest::NotStarted | Rest::Completed | Rest::Failed | Rest::Aborted => String::new(),
            Rest::HeldElsewhere => "another process holds it".into(),
            Rest::Asks => format!("its step was interrupted, and it is set to ask first: {go_on}"),
            Rest::Left => format!("its daemon ended, and it is set to ask before it continues: {go_on}"),
            Rest::Cancelled => format!("its step was cancelled: {go_on}, or abort it"),
            Rest::TooManyAttempts => format!("its step was interrupted too often: check its sessions, then {go_on}"),
            Rest::NotLaunched => {
                let program = current(state).ok().and_then(|(_, _, stage)| stage.check.as_ref()?.first());
                let program = program.map(|program| format!(" {program:?}")).unwrap_or_default();
                format!(
                    "its program{program} must be installed and on PATH: then {go_on}. If its name is wrong, correct rekindle.toml and start \
                     a new run"
                )
            }
            Rest::Drift => {
                let Looked::Captured { changed, .. } = found else { return "its files have drifted".into() };
                let named: Vec<String> = changed.iter().take(NAMED).map(|file| shown(&file.path)).collect();
                let more = changed.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!(
                    "its files are not as expected: {}{more}; resume it with --on-drift restore or accept",
                    named.join(", ")
                )
            }
            Rest::NoDirectory => match found {
                Looked::Unreadable(why) => format!("its directory cannot be read: {why}; it continues when it can be"),
                _ => "its directory is missing: it continues when it is back".into(),
            },
            Rest::NoEnvironment => {
                let missing = current(state).map(|(_, _, stage)| self.missing(at, state, stage));
                env_missing_text(&missing.unwrap_or_default())
            }
            Rest::Imported => format!("it was imported from elsewhere: {go_on}"),
            Rest::ManifestMissing => {
                "the files to restore are missing: import a bundle that has them, or resume it with --on-drift accept"
                    .into()
            }
        }
    }
}
