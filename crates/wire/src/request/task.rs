//! Requests about tasks: work that waits for its turn.

use std::collections::BTreeMap;

use rekindle_domain::event::{
    Budget, CheckpointMode, DEFAULT_ATTEMPTS, DependencyCondition, OnUncertain, Permissions, Persistence,
    ResumePolicy,
};
use rekindle_domain::time::Timestamp;
use rekindle_domain::whole_number::whole_signed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{object, possible_variables, whole};
use super::{AgentChoice, Content, NewSession, NewWorktree, Umask};

/// The most tasks of one request.
pub const MAX_BATCH: usize = 10_000;

/// A task to be made: a session to be, and when it may begin.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// Where the agent works: an absolute path.
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo"]))]
    pub working_dir: String,
    /// Who works.
    pub agent: AgentChoice,
    /// What the agent is told.
    pub prompt: Content,
    /// A short title; made from the prompt if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's mode asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What is answered to permission requests without asking anyone.
    #[serde(default)]
    pub permissions: Permissions,
    /// How long a question may wait for its answer, in seconds; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub wait_timeout_s: Option<u64>,
    /// Whether it continues by itself after an interruption.
    #[serde(default)]
    pub resume: ResumePolicy,
    /// What uncertain tool calls do to that.
    #[serde(default)]
    pub on_uncertain: OnUncertain,
    /// Whether its directory is captured before and after each run; as the daemon is configured without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointMode>,
    /// How snapshots of its session are kept, where that is not to be as the daemon is configured.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub persistence: Option<Persistence>,
    /// A worktree of git that it works in, made for the working directory; it works in that itself without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub worktree: Option<NewWorktree>,
    /// The caller's environment, filtered here.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
    /// How urgent it is.
    #[serde(default, deserialize_with = "whole_signed")]
    #[schemars(with = "i8", range(min = -100, max = 100))]
    pub priority: i8,
    /// It is not to begin before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it is too late for it: it fails if it has not begun, and is cancelled if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// How often it may be attempted, continuations after an interruption included.
    #[serde(default = "default_attempts", deserialize_with = "whole_signed")]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Doing it twice does no harm.
    #[serde(default)]
    pub repeatable: bool,
    /// It may work where others do.
    #[serde(default)]
    pub shared: bool,
    /// The most that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub budget: Option<Budget>,
    /// Labels, by which tasks are found and limited.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    pub labels: Vec<String>,
    /// What has to end before it begins: at most 1000 others.
    #[serde(default)]
    pub after: Vec<NewDependency>,
    /// A name for it within this request, by which others in it may wait for it.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub reference: Option<String>,
}

fn default_attempts() -> u32 {
    DEFAULT_ATTEMPTS
}

impl NewTask {
    /// Makes one of what it cannot be without.
    pub fn new(working_dir: String, agent: AgentChoice, prompt: Content) -> NewTask {
        NewTask {
            working_dir,
            agent,
            prompt,
            title: None,
            model: None,
            mode: None,
            permissions: Permissions::default(),
            wait_timeout_s: None,
            resume: ResumePolicy::default(),
            on_uncertain: OnUncertain::default(),
            checkpoints: None,
            persistence: None,
            worktree: None,
            env: BTreeMap::new(),
            umask: None,
            priority: 0,
            not_before: None,
            deadline_at: None,
            max_attempts: DEFAULT_ATTEMPTS,
            repeatable: false,
            shared: false,
            budget: None,
            labels: Vec::new(),
            after: Vec::new(),
            reference: None,
        }
    }

    /// Makes one that runs in such a session.
    pub fn of_session(session: &NewSession, prompt: Content) -> NewTask {
        NewTask {
            title: session.title.clone(),
            model: session.model.clone(),
            mode: session.mode.clone(),
            permissions: session.permissions,
            wait_timeout_s: session.wait_timeout_s,
            resume: session.resume,
            on_uncertain: session.on_uncertain,
            checkpoints: session.checkpoints,
            persistence: session.persistence,
            worktree: session.worktree.clone(),
            env: session.env.clone(),
            umask: session.umask,
            ..NewTask::new(session.working_dir.clone(), session.agent.clone(), prompt)
        }
    }

    /// Returns the session that it is to run in.
    pub fn session(&self) -> NewSession {
        NewSession {
            title: self.title.clone(),
            prompt: Some(self.prompt.clone()),
            model: self.model.clone(),
            mode: self.mode.clone(),
            permissions: self.permissions,
            wait_timeout_s: self.wait_timeout_s,
            resume: self.resume,
            on_uncertain: self.on_uncertain,
            checkpoints: self.checkpoints,
            persistence: self.persistence,
            worktree: self.worktree.clone(),
            env: self.env.clone(),
            umask: self.umask,
            ..NewSession::new(self.working_dir.clone(), self.agent.clone())
        }
    }
}

/// A task that another waits for.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a dependency is a task's id, a `ref` of this request, or an object with `task` and `condition`"
)]
pub enum NewDependency {
    /// It has to be completed: its id, or its `ref` in this request.
    Name(String),
    /// With a condition of its own.
    With {
        /// Its id, or its `ref` in this request.
        task: String,
        /// What is wanted of it.
        #[serde(default)]
        condition: DependencyCondition,
    },
}

impl NewDependency {
    /// Returns the task's name, and what is wanted of it.
    pub fn parts(&self) -> (&str, DependencyCondition) {
        match self {
            NewDependency::Name(task) => (task, DependencyCondition::Completed),
            NewDependency::With { task, condition } => (task, *condition),
        }
    }
}

/// Several tasks to be made: all or none.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTasks {
    /// The tasks, in order: at most 10,000.
    #[schemars(length(min = 1))]
    pub tasks: Vec<NewTask>,
}

/// A task, or several: what a request says, for the description of it.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum TasksBody {
    /// Several.
    Many(NewTasks),
    /// One.
    One(Box<NewTask>),
}

/// A task to be cancelled.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTask {
    /// Why, for its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A task to be attempted again.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryTask {
    /// In a new session.
    #[serde(default)]
    pub fresh: bool,
    /// The caller's environment.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
}

/// How urgent a task is from now on.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPriority {
    /// From -100 to 100.
    #[serde(deserialize_with = "whole_signed")]
    #[schemars(with = "i8", range(min = -100, max = 100))]
    pub priority: i8,
}
