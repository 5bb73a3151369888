//! A task as a row, and a line of its history.

use rekindle_domain::event::{Budget, Dependency, FilesTouched, Options, Provider, TaskKind, TaskStatus};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::session::PlanProgress;
use rekindle_domain::task::transition::Standing;
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A task as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// The task.
    pub task_id: TaskId,
    /// Its home.
    pub home_id: String,
    /// The machine of that home.
    pub host: String,
    /// What it is.
    pub kind: TaskKind,
    /// The task that it is a part of.
    pub parent_id: Option<TaskId>,
    /// A short title.
    pub title: String,
    /// What the agent is told, as JSON.
    pub prompt: String,
    /// Where the agent works.
    pub working_dir: String,
    /// Who works.
    pub agent: Provider,
    /// The agent's name, or its command's.
    pub agent_name: String,
    /// Settings of its session.
    pub options: Options,
    /// Names of the agent's variables.
    pub env_names: Vec<String>,
    /// The branch of its own worktree, if it works in one.
    pub branch: Option<String>,
    /// How urgent it is.
    pub priority: i8,
    /// It is not to begin before this time.
    pub not_before: Option<Timestamp>,
    /// When it is too late for it.
    pub deadline_at: Option<Timestamp>,
    /// How often it may be attempted.
    pub max_attempts: u32,
    /// Doing it twice does no harm.
    pub repeatable: bool,
    /// The most that it may use.
    pub budget: Option<Budget>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What it waits for, or waited for.
    pub after: Vec<Dependency>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// The caller's key, as it is stored.
    pub idempotency_key: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why.
    pub reason: Option<String>,
    /// Attempts that have begun.
    pub attempt: u32,
    /// The session of the latest one.
    pub session_id: Option<SessionId>,
    /// Its run.
    pub run_id: Option<RunId>,
    /// What a retry was really told.
    pub resume_prompt: Option<String>,
    /// How far it has come, once anything of it was heard.
    pub progress: Option<Progress>,
    /// Which files its latest run left otherwise than it found them.
    pub files_touched: Option<FilesTouched>,
    /// The end of what its agent said last.
    pub result: Option<String>,
    /// What all its attempts have used, as far as agents tell.
    pub usage: Option<TaskUsage>,
    /// How its latest agent process ended: its exit code, or the signal.
    pub exit: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Its newest record.
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Records of it that count.
    pub transitions: u32,
}

impl TaskRow {
    /// Returns where it stands.
    pub fn standing(&self) -> Standing {
        Standing { status: self.status, attempt: self.attempt, transitions: self.transitions }
    }
}

/// How far a task has come.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Turns that were begun.
    pub turns: u32,
    /// Tool calls in them.
    pub tool_calls: u32,
    /// How much of the agent's plan is done, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanProgress>,
    /// The end of the last thing that its agent said, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// How well its agent remembered when its session was last brought back, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

/// What a task has used. What no agent told is not known, which is not nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskUsage {
    /// Tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Money, in the agent's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl TaskUsage {
    /// Returns all tokens, if any are known.
    pub fn tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }
}

/// A transition of a task as a row of its history.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionRow {
    /// The task.
    pub task_id: TaskId,
    /// Its number, from 1 without a gap.
    pub n: u32,
    /// Where the task stood.
    pub from_status: Option<TaskStatus>,
    /// Where it stands.
    pub to_status: TaskStatus,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// What else the record says.
    pub metadata: Option<serde_json::Value>,
}

/// What reasons begin with that are counted.
pub(crate) const INTERRUPTED: &str = "interrupted";
pub(crate) const ADOPTED: &str = "adopted";

impl TransitionRow {
    /// Returns as what it is counted, if it is.
    pub(crate) fn mark(&self) -> Option<&'static str> {
        let reason = self.reason.as_deref()?;
        [INTERRUPTED, ADOPTED].into_iter().find(|mark| reason.starts_with(mark))
    }
}
