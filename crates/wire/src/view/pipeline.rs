//! Views of runs of pipelines: what their ledgers amount to, and what is pending in them.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Budget, ChangedFiles, FilesTouched, OnCut, OnDrift, PathList, StepCut, Usage};
use rekindle_domain::id::{PipelineId, SessionId, StepId, StepKey};
use rekindle_domain::pipeline::summary::{RunSummary, StepStatus};
use rekindle_domain::pipeline::template::payload_field;
use rekindle_domain::pipeline::{Payload, PipelineState, RunStatus, StepState};
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TouchedView;
use crate::string_enum::string_enums;

/// Bytes of findings that are shown of a step; its ledger has all of them.
const SHOWN: usize = 2000;

string_enums! {
    /// What a step that is not finished waits for.
    pub enum PendingWhy {
        /// It is about to be done.
        Intended = "intended",
        /// Somebody works at it.
        Working = "working",
        /// Its agent has asked a person.
        Person = "person",
        /// Its agent, of which nothing can be told, or whose heartbeats are missing.
        Silent = "silent",
        /// Its agent, of which nothing was heard for so long that somebody should look.
        Stalled = "stalled",
        /// Another run that works at the same.
        SameKey = "same_key",
        /// The directory: somebody else works there.
        Directory = "directory",
        /// A place: as many tasks and steps run as may.
        Place = "place",
        /// The time of its next attempt.
        Time = "time",
        /// Its attempt was cut; what becomes of that is about to be seen.
        Cut = "cut",
        /// A person: it was cut, and is to ask.
        Asks = "asks",
        /// A person: its daemon ended, and its run goes on by itself only under the one that it was begun under.
        Left = "left",
        /// A person: somebody cancelled it.
        Cancelled = "cancelled",
        /// A person: it was cut too often.
        TooManyAttempts = "too_many_attempts",
        /// A person: the program of its check could not be started.
        NotLaunched = "not_launched",
        /// A person: files are not as it expects them.
        Drift = "drift",
        /// Its directory, which is not there or cannot be captured.
        NoDirectory = "no_directory",
        /// A caller with the variables that its agent needs.
        NoEnvironment = "no_environment",
        /// The snapshot that it would be restored to.
        ManifestMissing = "manifest_missing",
        /// A person: its run came here from another home.
        Imported = "imported",
        /// Another daemon that holds the run.
        HeldElsewhere = "held_elsewhere",
    }
}

impl PendingWhy {
    /// Tells whether it stays so until somebody resumes the run.
    pub fn rests(self) -> bool {
        match self {
            PendingWhy::Asks
            | PendingWhy::Left
            | PendingWhy::Cancelled
            | PendingWhy::TooManyAttempts
            | PendingWhy::NotLaunched
            | PendingWhy::Drift
            | PendingWhy::NoEnvironment
            | PendingWhy::ManifestMissing
            | PendingWhy::Imported => true,
            PendingWhy::Intended
            | PendingWhy::Working
            | PendingWhy::Person
            | PendingWhy::Silent
            | PendingWhy::Stalled
            | PendingWhy::SameKey
            | PendingWhy::Directory
            | PendingWhy::Place
            | PendingWhy::Time
            | PendingWhy::Cut
            | PendingWhy::NoDirectory
            | PendingWhy::HeldElsewhere
            | PendingWhy::Unknown => false,
        }
    }

    /// Tells whether nothing goes on, and something will once what is in the way is over: nobody need say so.
    pub fn passes(self) -> bool {
        match self {
            PendingWhy::Silent
            | PendingWhy::Stalled
            | PendingWhy::SameKey
            | PendingWhy::Directory
            | PendingWhy::NoDirectory
            | PendingWhy::HeldElsewhere => true,
            PendingWhy::Intended
            | PendingWhy::Working
            | PendingWhy::Person
            | PendingWhy::Place
            | PendingWhy::Time
            | PendingWhy::Cut
            | PendingWhy::Asks
            | PendingWhy::Left
            | PendingWhy::Cancelled
            | PendingWhy::TooManyAttempts
            | PendingWhy::NotLaunched
            | PendingWhy::Drift
            | PendingWhy::NoEnvironment
            | PendingWhy::ManifestMissing
            | PendingWhy::Imported
            | PendingWhy::Unknown => false,
        }
    }
}

/// A run of a pipeline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Pipeline")]
pub struct PipelineView {
    /// Its name, as people see it.
    #[schemars(extend("examples" = ["run-20251020-140818-4f9f29a1"]))]
    pub run_id: String,
    /// The id of its ledger.
    pub id: PipelineId,
    /// Where it stands.
    pub status: RunStatus,
    /// Its task.
    pub task_id: String,
    /// What is wanted of that.
    pub goal: String,
    /// Which of the configuration's pipelines it goes through.
    pub pipeline: String,
    /// Where its steps work.
    pub working_dir: String,
    /// The directory that it was asked for in: another one if it works in a worktree.
    pub origin: String,
    /// The snapshot that its first step began with.
    pub snapshot_id: String,
    /// The stage of the step that was meant to be done last; `complete` if the run is.
    pub current_stage: Option<String>,
    /// The names of its stages, in their order.
    pub stage_names: Vec<String>,
    /// The round that it is in.
    pub round: u32,
    /// Rounds that its pipeline has at most.
    pub max_rounds: u32,
    /// What becomes of a step whose agent was cut, if somebody said that.
    pub on_cut: Option<OnCut>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, if that was said.
    pub reason: Option<String>,
    /// Who started it.
    pub by: String,
    /// Who ended it, if a person did.
    pub ended_by: Option<String>,
    /// BLAKE3 of the configuration that it was started with.
    pub config_hash: BlobId,
    /// Its newest record.
    pub last_seq: u64,
    /// What came last of each agent, by its name in the configuration, and of each check, by its stage: `builder.completed`.
    pub terminal_events: BTreeMap<String, String>,
    /// Its steps, in the order in which they were meant to be done.
    pub stages: Vec<PipelineStepView>,
    /// What was asked and said in it.
    pub counts: PipelineCounts,
    /// What was used in all of its finished steps.
    pub usage: Usage,
    /// The most that its steps may use; as much again each time that it is reopened.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// The step that is not finished; null if there is none.
    pub pending: Option<PendingStep>,
}

/// A step of a run of a pipeline: a stage in a round.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PipelineStep")]
pub struct PipelineStepView {
    /// Its stage.
    pub name: String,
    /// Its round.
    pub round: u32,
    /// Its id within the run: `review-2`.
    #[schemars(with = "String")]
    pub step_id: StepId,
    /// Its key.
    #[schemars(with = "String", extend("pattern" = "^ik:[0-9a-f]{64}$"))]
    pub key: StepKey,
    /// Where it stands.
    pub status: StepStatus,
    /// Who works at it, by the name in the configuration; null if a command checks.
    pub agent: Option<String>,
    /// What came of it.
    pub outcome: Option<String>,
    /// What was found, if that was said: the beginning of it.
    pub findings: Option<String>,
    /// The tree that it begins with.
    pub from: BlobId,
    /// The tree that it left.
    pub to: Option<BlobId>,
    /// The session of its latest attempt.
    pub session_id: Option<SessionId>,
    /// Attempts that have begun.
    pub attempts: u32,
    /// Why the latest of them came to nothing, if it did.
    pub cut: Option<StepCut>,
    /// Its result was there before.
    pub cached: bool,
    /// What was used for it.
    pub usage: Option<Usage>,
    /// How many files are not what they were before it, and lines in them.
    pub files_touched: Option<TouchedView>,
    /// When it was meant to be done.
    pub intended_at: Timestamp,
    /// When its latest attempt began.
    pub began_at: Option<Timestamp>,
    /// When its result was recorded.
    pub ended_at: Option<Timestamp>,
}

/// What was asked and said in a run of a pipeline, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PipelineCounts {
    /// Commands: every attempt is one, and every reminder.
    pub commands: u64,
    /// Results that agents and checks came to; those of a cache are none.
    pub terminal_events: u64,
    /// Events that agents told of finished steps.
    pub events: u64,
    /// Heartbeats, likewise.
    pub heartbeats: u64,
    /// Log lines, likewise.
    pub logs: u64,
}

/// A step of a run that is not finished.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PipelinePending")]
pub struct PendingStep {
    /// The step.
    #[schemars(with = "String")]
    pub step_id: StepId,
    /// Its stage.
    pub stage: String,
    /// Its round.
    pub round: u32,
    /// Attempts that have begun.
    pub attempts: u32,
    /// The session of the latest of them.
    pub session_id: Option<SessionId>,
    /// What it waits for.
    pub why: PendingWhy,
    /// The same in words, where there is more to say.
    pub detail: Option<String>,
    /// Since when, as far as its ledger says.
    pub since: Timestamp,
    /// The files that are not as it expects them, if that is what it waits for.
    pub drift: Option<PipelineDriftView>,
}

/// Files of a run that are not as its ledger expects them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PipelineDrift")]
pub struct PipelineDriftView {
    /// The tree that is expected.
    pub expected: BlobId,
    /// The tree that was found.
    pub found: BlobId,
    /// The files that differ.
    pub files: ChangedFiles,
    /// Those of them that were changed after the step's agent was proven dead.
    pub after_cut: PathList,
    /// Those that may have been changed by it or by anybody.
    pub unknown_author: PathList,
    /// What was decided, if anything was.
    pub decision: Option<OnDrift>,
}

/// Runs of pipelines, a page of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PipelineList {
    /// The runs.
    pub pipelines: Vec<PipelineView>,
    /// What to ask for the next page with, if there is one.
    #[serde(default)]
    pub next: Option<String>,
}

/// What became of a resume.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PipelineResumed {
    /// It goes on; not so if it is complete, and there is nothing to do.
    pub resumed: bool,
    /// It had failed, or was aborted, and goes on all the same.
    pub reopened: bool,
    /// What the configuration says otherwise by now, and the run does not go by.
    pub config_changes: Vec<String>,
    /// The run.
    pub pipeline: PipelineView,
}

impl PipelineView {
    /// Returns what is shown of a run; none of one that has no record yet. What the step that is not finished waits for is as far as
    /// the ledger alone says.
    pub fn of(state: &PipelineState) -> Option<PipelineView> {
        let started = state.started.as_deref()?;
        let summary = RunSummary::of(state)?;
        let mut usage = Usage::default();
        for step in state.steps() {
            let used = step.result.as_ref().and_then(|result| result.usage).unwrap_or_default();
            usage.input_tokens = usage.input_tokens.saturating_add(used.input_tokens);
            usage.output_tokens = usage.output_tokens.saturating_add(used.output_tokens);
            usage.cost = [usage.cost, used.cost].into_iter().flatten().reduce(|one, other| one + other);
        }
        let said = state.counts.said;
        Some(PipelineView {
            run_id: summary.run_id,
            id: state.id,
            status: state.status,
            task_id: summary.task_id,
            goal: started.task.goal.clone(),
            pipeline: started.pipeline.clone(),
            working_dir: started.working_dir.clone(),
            origin: started.origin.clone(),
            snapshot_id: summary.snapshot_id,
            current_stage: summary.current_stage,
            stage_names: started.stages.stages.iter().map(|stage| stage.name.clone()).collect(),
            round: summary.round,
            max_rounds: started.stages.rounds(),
            on_cut: started.on_cut,
            started_at: summary.started_at,
            ended_at: summary.ended_at,
            reason: summary.reason,
            by: started.by.clone(),
            ended_by: state.ended.as_ref().and_then(|ended| ended.by.clone()),
            config_hash: started.config_hash,
            last_seq: state.position().last_seq,
            terminal_events: summary.terminal_events,
            stages: state.steps().map(|step| PipelineStepView::of(step)).collect(),
            counts: PipelineCounts {
                commands: state.counts.commands,
                terminal_events: state.counts.terminal_events,
                events: said.events,
                heartbeats: said.heartbeats,
                logs: said.logs,
            },
            usage,
            budget: started.budget,
            pending: PendingStep::of(state),
        })
    }
}

impl PipelineStepView {
    fn of(step: &StepState) -> PipelineStepView {
        let result = step.result.as_ref();
        let findings = result.and_then(|result| match &result.payload {
            Some(Payload::Inline(json)) => payload_field(json.as_json(), "findings"),
            Some(Payload::Blob(_)) | None => None,
        });
        let files = result.and_then(|result| result.files_touched.as_deref());
        PipelineStepView {
            name: step.id.stage.clone(),
            round: step.id.round,
            step_id: step.id.clone(),
            key: step.key,
            status: step.status(),
            agent: step.agent.as_ref().map(|agent| agent.name.clone()),
            outcome: result.map(|result| result.outcome.clone()),
            findings: findings.filter(|found| !found.is_empty()).map(shortened),
            from: step.from,
            to: result.map(|result| result.to),
            session_id: step.attempt.as_ref().map(|attempt| attempt.session_id),
            attempts: step.attempts,
            cut: step.cut().map(|cut| cut.reason),
            cached: result.is_some_and(|result| result.cached),
            usage: result.and_then(|result| result.usage),
            files_touched: files.map(touched),
            intended_at: step.intended_at,
            began_at: step.attempt.as_ref().map(|attempt| attempt.began_at),
            ended_at: result.map(|result| result.at),
        }
    }
}

/// Returns the beginning of a text.
fn shortened(mut text: String) -> String {
    if text.len() > SHOWN {
        text.truncate(text.floor_char_boundary(SHOWN));
        text.push('…');
    }
    text
}

fn touched(files: &FilesTouched) -> TouchedView {
    let FilesTouched { total, lines_added, lines_removed, .. } = *files;
    TouchedView { files: total, lines_added, lines_removed }
}

impl PendingStep {
    /// Returns the step of a run that is not finished, with what it waits for as far as the ledger says; none once the run has ended.
    pub fn of(state: &PipelineState) -> Option<PendingStep> {
        let step = state.current_step().filter(|_| state.status == RunStatus::Running)?;
        let (why, since) = match (step.open_attempt(), step.cut()) {
            (Some(attempt), _) => (PendingWhy::Working, attempt.began_at),
            (None, Some(cut)) => (PendingWhy::Cut, cut.at),
            (None, None) => (PendingWhy::Intended, step.intended_at),
        };
        Some(PendingStep {
            step_id: step.id.clone(),
            stage: step.id.stage.clone(),
            round: step.id.round,
            attempts: step.attempts,
            session_id: step.attempt.as_ref().map(|attempt| attempt.session_id),
            why,
            detail: None,
            since,
            drift: None,
        })
    }
}

#[cfg(test)]
mod tests;
