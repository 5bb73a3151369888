//! Views of tasks.

use std::collections::BTreeMap;

use rekindle_domain::event::{Budget, Dependency, FilesTouched, TaskKind, TaskStatus};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::session::PlanProgress;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Task")]
pub struct TaskView {
    /// The task.
    pub id: TaskId,
    /// What it is.
    pub kind: TaskKind,
    /// The task that it is a part of.
    pub parent_id: Option<TaskId>,
    /// The name of the pipeline run that it is, if it is one.
    #[serde(default)]
    pub pipeline_run: Option<String>,
    /// A short title.
    pub title: String,
    /// Where its agent works.
    pub working_dir: String,
    /// The branch of its own worktree, if it works in one.
    pub branch: Option<String>,
    /// Its agent's name, or its command's.
    pub agent: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: Option<String>,
    /// Attempts that have begun.
    pub attempt: u32,
    /// How often it may be attempted.
    pub max_attempts: u32,
    /// The session of its latest attempt.
    pub session_id: Option<SessionId>,
    /// The run of its latest attempt.
    pub run_id: Option<RunId>,
    /// How urgent it is.
    pub priority: i8,
    /// It is not to begin before this time.
    pub not_before: Option<Timestamp>,
    /// When it is too late for it.
    pub deadline_at: Option<Timestamp>,
    /// The most that it may use.
    pub budget: Option<Budget>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What has to end before it begins.
    pub after: Vec<Dependency>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// When that was.
    pub created_at: Timestamp,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its place among those that wait for their turn, from 1.
    #[serde(default)]
    pub position: Option<usize>,
    /// What it waits for, if it waits for its turn.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// How far it has come, once anything of it was heard.
    #[serde(default)]
    pub progress: Option<TaskProgress>,
    /// Which files its latest run left otherwise than it found them.
    #[serde(default)]
    pub files_touched: Option<FilesTouched>,
    /// The end of what its agent said last, once it has ended.
    #[serde(default)]
    pub result: Option<String>,
    /// How its latest agent process ended: its exit code, or the signal.
    #[serde(default)]
    pub exit: Option<String>,
}

/// How far a task has come.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskProgress {
    /// Turns that were begun.
    pub turns: u32,
    /// Tool calls in them.
    pub tool_calls: u32,
    /// How much of the agent's plan is done, if it has one.
    #[serde(default)]
    pub plan: Option<PlanProgress>,
    /// The end of the last thing its agent said, in one line.
    pub last_words: Option<String>,
    /// What it has used so far; what its agents do not tell is not known.
    pub usage: TaskUsage,
    /// When its agent last said anything, while it runs.
    pub last_output_at: Option<Timestamp>,
    /// It runs, and its agent has said nothing for long; nobody ends it for that.
    #[serde(default)]
    pub stalled: bool,
}

/// What a task has used. What no agent told is not known, which is not nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskUsage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Money, in the agent's currency.
    pub cost: Option<f64>,
}

/// Tasks, a page of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// What to ask for the next page with, if there is one.
    #[serde(default)]
    pub next: Option<String>,
}

/// A transition in the history of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskTransition")]
pub struct TransitionView {
    /// Its number, from 1 without a gap.
    pub n: u32,
    /// Where the task stood.
    pub from: Option<TaskStatus>,
    /// Where it stands.
    pub to: TaskStatus,
    /// Why.
    pub reason: Option<String>,
    /// Who: `user:…`, `token:…`, `scheduler`, `recovery`, `agent`, `budget` or `dependency`.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// What else is known of it.
    pub metadata: Option<serde_json::Value>,
}

/// The history of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TransitionList {
    /// What happened to it, in order.
    pub transitions: Vec<TransitionView>,
}

/// How tasks stand.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskStats")]
pub struct TaskStatsView {
    /// As of when; at most two seconds ago.
    pub as_of: Timestamp,
    /// How many there are, by where they stand.
    pub statuses: BTreeMap<TaskStatus, u64>,
    /// The same for each agent.
    pub agents: BTreeMap<String, BTreeMap<TaskStatus, u64>>,
    /// What came of those that ended in the last 24 hours.
    pub day: DayView,
}

/// What came of tasks in the last 24 hours.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskDay")]
pub struct DayView {
    /// How many ended, by how.
    pub ended: BTreeMap<TaskStatus, u64>,
    /// How long those took that ran, in milliseconds: half of them less than this.
    pub median_ms: Option<u64>,
    /// Nine of ten of them less than this.
    pub p90_ms: Option<u64>,
    /// Tokens that they used, as far as agents tell.
    pub tokens: Option<u64>,
    /// Money that they used, as far as agents tell.
    pub cost: Option<f64>,
    /// How often one was interrupted.
    pub interruptions: u64,
    /// How often one was taken over by another daemon.
    pub adoptions: u64,
    /// How well agents remembered where sessions were brought back, by how many of those that ended.
    pub verdicts: BTreeMap<String, u64>,
}

/// What was made of a request for tasks: the one, or all of several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TasksMade {
    /// Several, in the order of the request.
    Many(TaskList),
    /// One.
    One(Box<TaskView>),
}
