//! Events of tasks: units of requested work, from being asked for to their end. They stand in the stream of tasks, not in a
//! session's log.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::is_false;
use super::{Budget, Options, Provider, Raw, SessionWorktree};
use crate::id::{RunId, SessionId, TaskId};
use crate::string_enum::string_enums;
use crate::time::Timestamp;

string_enums! {
    /// What a task is.
    #[derive(Default, JsonSchema)]
    pub enum TaskKind {
        /// Work that waits for its turn.
        #[default]
        Task = "task",
        /// A run that somebody began by hand; listed beside tasks.
        Run = "run",
        /// Several stages, each a task of its own.
        Pipeline = "pipeline",
    }

    /// Where a task stands.
    #[derive(JsonSchema)]
    pub enum TaskStatus {
        /// It waits for its turn.
        Pending = "pending",
        /// Its run goes on, or is about to be continued.
        Running = "running",
        /// A person is needed.
        WaitingInput = "waiting_input",
        /// Its agent ended its turn.
        Completed = "completed",
        /// It failed, or a rule ended it.
        Failed = "failed",
        /// A person ended it.
        Cancelled = "cancelled",
    }

    /// What a task wants of another that it waits for.
    #[derive(Default, JsonSchema)]
    pub enum DependencyCondition {
        /// That it is completed.
        #[default]
        Completed = "completed",
        /// That it has ended, in whatever way.
        Ended = "ended",
    }
}

impl TaskStatus {
    /// Tells whether nothing more happens by itself.
    pub fn is_ended(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// A dependency of a task on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dependency {
    /// The other task.
    pub task_id: TaskId,
    /// What is wanted of it.
    #[serde(default)]
    pub condition: DependencyCondition,
}

/// A task as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// What it is.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub kind: TaskKind,
    /// The task that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<TaskId>,
    /// A short title for lists.
    #[serde(default)]
    pub title: String,
    /// What the agent is told: a text, or blocks.
    #[serde(deserialize_with = "Raw::owned")]
    pub prompt: Raw<'static>,
    /// Where the agent works.
    pub working_dir: String,
    /// The worktree that it works in, if that is to be made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<SessionWorktree>>,
    /// Who works.
    pub provider: Provider,
    /// Settings of its session.
    #[serde(default)]
    pub options: Options,
    /// Names of the environment variables that the agent gets; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// How urgent it is, from -100 to 100.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i8,
    /// It is not to begin before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it is too late for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// How often it may be attempted.
    #[serde(default = "default_attempts")]
    pub max_attempts: u32,
    /// Doing it twice does no harm.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeatable: bool,
    /// It may work where others do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// The most that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What has to end before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
    /// The caller's key and what was asked with it, as they are stored: the same request makes one task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// Attempts of a task that says nothing of them: the first, and the continuations that a session makes by itself.
pub const DEFAULT_ATTEMPTS: u32 = 3;

fn default_attempts() -> u32 {
    DEFAULT_ATTEMPTS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_plain(kind: &TaskKind) -> bool {
    *kind == TaskKind::Task
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(priority: &i8) -> bool {
    *priority == 0
}

/// Somebody asked for a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCreated<'a> {
    /// The task.
    pub task_id: TaskId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// What was asked for.
    pub task: Box<TaskSpec>,
    /// Those of its dependencies that had ended as it wants before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<TaskId>,
}

/// A task's attempt began: its run is recorded in the same append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskClaimed<'a> {
    /// The task.
    pub task_id: TaskId,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The session in which it runs.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why now.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// What the agent is told, if that is not the task's prompt alone.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub resume_prompt: Option<Cow<'a, str>>,
}

/// A task needs a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskWaiting<'a> {
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// What for.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// A task goes on: somebody answered, its run was taken over, or another run continues it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResumed<'a> {
    /// The task.
    pub task_id: TaskId,
    /// The attempt: that of before, or the next one.
    pub attempt: u32,
    /// The session in which it runs.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The task, if it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<EndedTask>>,
}

/// A task waits for its turn again: its attempt came to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRequeued<'a> {
    /// The task.
    pub task_id: TaskId,
    /// The attempt that came to nothing.
    pub attempt: u32,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// For how long it is not to begin, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// The next attempt has a session of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fresh: bool,
}

impl TaskRequeued<'_> {
    /// Returns when it may begin again, if this was recorded at `ts`.
    pub fn not_before(&self, ts: Timestamp) -> Timestamp {
        ts.plus_millis(i64::try_from(self.delay_ms).unwrap_or(i64::MAX))
    }
}

/// Something about a task changed, and its status did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskChanged<'a> {
    /// The task.
    pub task_id: TaskId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// How urgent it is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i8>,
    /// Why it stands where it stands.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

/// Somebody wants a task to end. On disk before any other effect, and never undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCancelRequested<'a> {
    /// The task.
    pub task_id: TaskId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// What it has then come to: a person cancels, a rule fails it.
    pub status: TaskStatus,
}

/// A task that had ended is to be attempted again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRetried<'a> {
    /// The task.
    pub task_id: TaskId,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The task as it was when it ended.
    pub ended: Box<EndedTask>,
    /// The next attempt has a session of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fresh: bool,
    /// Those of its dependencies that have not ended as it wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Dependency>,
}

/// A task that has ended, whole: nobody remembers those, so whoever brings one back says everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedTask {
    /// What was asked for.
    pub task: TaskSpec,
    /// When that was.
    pub created_at: Timestamp,
    /// How it had ended.
    pub status: TaskStatus,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Attempts so far.
    pub attempt: u32,
    /// The session of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The sessions of those before it, if they had others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_sessions: Vec<SessionId>,
    /// The run of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// How urgent it is, if that was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i8>,
    /// How long its attempts went on, in milliseconds.
    #[serde(default)]
    pub earlier_ms: u64,
    /// Records of it so far: the next transition has the next number.
    pub transitions: u32,
}

/// A task has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEnded<'a> {
    /// The task.
    pub task_id: TaskId,
    /// The attempt that ended it: that many had begun.
    pub attempt: u32,
    /// How.
    pub status: TaskStatus,
    /// Who.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// Why.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}
