//! The summary of a pipeline run as `run.json` and callers see it: derived from its ledger, and made again when it is deleted.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::state::{PipelineState, RunStatus, StepState};
use crate::blob_id::BlobId;
use crate::event::Usage;
use crate::id::{SessionId, StepKey};
use crate::string_enum::string_enums;
use crate::time::Timestamp;

/// The `current_stage` of a run that has gone through all of them.
pub const COMPLETE: &str = "complete";

string_enums! {
    /// Where a step of a run stands.
    #[derive(JsonSchema)]
    pub enum StepStatus {
        /// It is to be done.
        Intended = "intended",
        /// Somebody works at it.
        Running = "running",
        /// An attempt at it was cut, and no other has begun.
        Interrupted = "interrupted",
        /// It is finished.
        Finished = "finished",
        /// It is finished, and has failed.
        Failed = "failed",
    }
}

impl StepState {
    /// Returns where it stands.
    pub fn status(&self) -> StepStatus {
        match (&self.result, self.open_attempt(), self.cut()) {
            (Some(_), ..) if self.has_failed() => StepStatus::Failed,
            (Some(_), ..) => StepStatus::Finished,
            (None, Some(_), _) => StepStatus::Running,
            (None, None, Some(_)) => StepStatus::Interrupted,
            (None, None, None) => StepStatus::Intended,
        }
    }
}

/// A pipeline run in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its name; its id if no name stands for that.
    pub run_id: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Its task.
    pub task_id: String,
    /// The snapshot that its first step began with.
    pub snapshot_id: String,
    /// The stage of the step that was meant to be done last; `complete` if the run is.
    pub current_stage: Option<String>,
    /// The round that it is in.
    pub round: u32,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What came last of each agent, by its name in the configuration, and of each check, by its stage: `builder.completed`.
    pub terminal_events: BTreeMap<String, String>,
    /// Its steps.
    pub stages: Vec<StepSummary>,
}

/// A step of a run in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepSummary {
    /// Its stage.
    pub name: String,
    /// Its round.
    pub round: u32,
    /// Its key.
    pub key: StepKey,
    /// Where it stands.
    pub status: StepStatus,
    /// What came of it.
    pub outcome: Option<String>,
    /// The tree that it begins with.
    pub from: BlobId,
    /// The tree that it left.
    pub to: Option<BlobId>,
    /// The session of its latest attempt.
    pub session_id: Option<SessionId>,
    /// Attempts that have begun.
    pub attempts: u32,
    /// Its result was there before.
    pub cached: bool,
    /// What was used for it.
    pub usage: Option<Usage>,
}

impl RunSummary {
    /// Returns the summary of a run; none of one that has no record yet.
    pub fn of(state: &PipelineState) -> Option<RunSummary> {
        let started = state.started.as_deref()?;
        let name = crate::id::RunName::of(state.id);
        let current_stage = match state.status {
            RunStatus::Completed => Some(COMPLETE.to_owned()),
            _ => state.last_step().map(|step| step.id.stage.clone()),
        };
        let mut terminal_events = BTreeMap::new();
        for step in state.steps() {
            if let Some(result) = &step.result {
                let who = step.agent.as_ref().map_or(&step.id.stage, |agent| &agent.name);
                terminal_events.insert(who.clone(), format!("{who}.{}", result.outcome));
            }
        }
        Some(RunSummary {
            run_id: name.map_or_else(|| state.id.to_string(), |name| name.to_string()),
            status: state.status,
            task_id: started.task.id.clone(),
            snapshot_id: started.snapshot_id.clone(),
            current_stage,
            round: state.round(),
            started_at: started.at,
            ended_at: state.ended.as_ref().map(|ended| ended.at),
            reason: state.ended.as_ref().and_then(|ended| ended.reason.clone()),
            terminal_events,
            stages: state.steps().map(|step| summary_of(step)).collect(),
        })
    }
}

fn summary_of(step: &StepState) -> StepSummary {
    let result = step.result.as_ref();
    StepSummary {
        name: step.id.stage.clone(),
        round: step.id.round,
        key: step.key,
        status: step.status(),
        outcome: result.map(|result| result.outcome.clone()),
        from: step.from,
        to: result.map(|result| result.to),
        session_id: step.attempt.as_ref().map(|attempt| attempt.session_id),
        attempts: step.attempts,
        cached: result.is_some_and(|result| result.cached),
        usage: result.and_then(|result| result.usage),
    }
}
