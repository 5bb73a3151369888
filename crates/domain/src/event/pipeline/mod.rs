//! Events of a pipeline run: its start with everything that it goes by, its steps, drift of its files, and its end. They stand in the
//! run's ledger, which is a stream of its own.

mod config;
mod step;

pub use config::{
    AgentConfig, AgentIdentity, DEFAULT_HEARTBEAT_S, DEFAULT_PIPELINE, DEFAULT_ROUNDS,
    DEFAULT_STALLED_AFTER_S, InputValue, OnCut, OnDrift, PipelineConfig, ProjectConfig, StageConfig,
    TaskConfig, UnknownKeys,
};
pub use step::{BlobRef, StepBegan, StepCounts, StepCut, StepFinished, StepIntended, StepInterrupted};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Budget, BudgetNotice, ChangedFiles, Options};
use crate::blob_id::BlobId;
use crate::id::StepId;
use crate::path_name::PathName;
use crate::time::Timestamp;

/// A pipeline run was started. Nothing that it goes by is looked up elsewhere later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineStarted<'a> {
    /// Which of the configuration's pipelines.
    #[serde(borrow)]
    pub pipeline: Cow<'a, str>,
    /// The configuration as it was, with what is built in written out.
    pub config: Box<ProjectConfig>,
    /// BLAKE3 of the file that it was read from.
    pub config_hash: BlobId,
    /// The task.
    pub task: Box<TaskConfig>,
    /// The name of the snapshot that the first step begins with, as people see it.
    #[serde(borrow)]
    pub snapshot_id: Cow<'a, str>,
    /// The tree of that.
    pub tree: BlobId,
    /// Where its steps work.
    #[serde(borrow)]
    pub working_dir: Cow<'a, str>,
    /// The directory that it was asked for in: another one if it works in a worktree.
    #[serde(borrow)]
    pub origin: Cow<'a, str>,
    /// What becomes of a step whose agent was cut; without it that hangs on the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cut: Option<OnCut>,
    /// What becomes of files that a step that has not begun does not expect; without it a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drift: Option<OnDrift>,
    /// Results of other runs are not used for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// Settings of the sessions of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Box<Options>>,
    /// The most that all of its steps may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who started it.
    #[serde(borrow)]
    pub by: Cow<'a, str>,
    /// The caller's key, so that a repeated request finds this run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
}

/// Files of a run are not as its ledger expects them, and that was decided about it. On disk before any file is touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineDrift<'a> {
    /// The step that is to go on.
    pub step_id: StepId,
    /// The tree that was expected.
    pub expected: BlobId,
    /// The tree that was found.
    pub found: BlobId,
    /// The files that differ.
    #[serde(default)]
    pub files: ChangedFiles,
    /// Those of them that were changed after the step's agent was proven dead.
    #[serde(default, skip_serializing_if = "PathList::is_empty")]
    pub after_cut: PathList,
    /// Those that may have been changed by it or by anybody.
    #[serde(default, skip_serializing_if = "PathList::is_empty")]
    pub unknown_author: PathList,
    /// What was decided.
    pub decision: OnDrift,
    /// Who decided; nobody if it was a rule.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A run came here from another home, in a bundle. It rests until somebody says that it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineImported<'a> {
    /// The machine that it comes from, as people call it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Cow<'a, str>>,
    /// When the bundle was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<Timestamp>,
    /// Where its steps work from now on, if that is another directory.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<Cow<'a, str>>,
}

/// Most of a run's budget is used: recorded once, until somebody grants as much again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PipelineBudget {
    /// The budget, and how much of it.
    #[serde(flatten)]
    pub notice: BudgetNotice,
}

/// A list of paths, of which the first are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PathList {
    /// How many.
    pub total: u64,
    /// The first of them.
    pub first: Vec<PathName>,
}

impl PathList {
    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

macro_rules! endings {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name<'a> {
            /// Why.
            #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
            pub reason: Option<Cow<'a, str>>,
            /// Who; nobody if it follows from the record before.
            #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
            pub by: Option<Cow<'a, str>>,
        }
    )*};
}

endings! {
    /// A run has gone through all of its stages. Nothing else says so.
    PipelineCompleted;
    /// A run has failed: a step did, and nothing was to follow, or there were too many rounds.
    PipelineFailed;
    /// Somebody ended a run.
    PipelineAborted;
    /// A run that had failed, or was aborted, goes on.
    PipelineReopened;
}
