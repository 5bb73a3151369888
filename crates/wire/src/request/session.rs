//! Requests that make a session, change it, and continue it.

use std::collections::BTreeMap;

use rekindle_domain::event::{CheckpointMode, OnUncertain, Permissions, Persistence, ResumePolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{answer_with_token, at_least_one, object, possible_variables, whole};
use super::{Content, NewAnswer, NewWorktree, Umask};
use crate::token_text::TokenText;

/// A session to be made.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Where the agent works: an absolute path.
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo"]))]
    pub working_dir: String,
    /// Who answers.
    pub agent: AgentChoice,
    /// A short title; made from the prompt if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Content>,
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
    /// A lasting name for the session: if one that is not closed has it, that is the one that is meant. It is resumed if it was
    /// interrupted, and the prompt is its next message; other settings are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), extend("pattern" = "^[!-~]+$", "examples" = ["my-project"]))]
    pub key: Option<String>,
    /// How its snapshots are kept, where that is not to be as the daemon is configured.
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
}

impl NewSession {
    /// Makes one of what it cannot be without.
    pub fn new(working_dir: String, agent: AgentChoice) -> NewSession {
        NewSession {
            working_dir,
            agent,
            title: None,
            prompt: None,
            model: None,
            mode: None,
            permissions: Permissions::default(),
            wait_timeout_s: None,
            resume: ResumePolicy::default(),
            on_uncertain: OnUncertain::default(),
            checkpoints: None,
            key: None,
            persistence: None,
            worktree: None,
            env: BTreeMap::new(),
            umask: None,
        }
    }
}

/// Which agent.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "the agent is a known agent's name, or an object with `profile` and `command`"
)]
pub enum AgentChoice {
    /// One of the known ones: `GET /api/agents` lists them.
    Known(String),
    /// Any command.
    Command {
        /// How its lines are read: `acp` or `exec`.
        #[schemars(extend("enum" = ["acp", "exec"]))]
        profile: String,
        /// The command.
        #[schemars(length(min = 1), extend("prefixItems" = [{"type": "string", "minLength": 1}]))]
        command: Vec<String>,
    },
}

/// What may be changed of a session: one thing at least.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionChange", transform = at_least_one)]
pub struct Change {
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumePolicy>,
    /// What uncertain tool calls do to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_uncertain: Option<OnUncertain>,
    /// What is answered to permission requests without asking anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// How long a question may wait for its answer, in seconds, from the next one on; 0 is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub wait_timeout_s: Option<u64>,
    /// Whether its directory is captured before and after each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointMode>,
    /// The agent's mode: asked for at once of one that lives, and of every one that comes after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its snapshots are kept: what is named here, the rest stays as it was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub persistence: Option<Persistence>,
}

impl Change {
    /// Tells whether it changes what the session does, beside what it is called.
    pub fn names_options(&self) -> bool {
        self.resume.is_some()
            || self.on_uncertain.is_some()
            || self.permissions.is_some()
            || self.wait_timeout_s.is_some()
            || self.checkpoints.is_some()
            || self.persistence.is_some()
            || self.names_settings()
    }

    /// Tells whether it changes how the agent works.
    pub fn names_settings(&self) -> bool {
        self.mode.is_some() || self.model.is_some()
    }
}

/// A session to be resumed: a wait answered by its token, or an interrupted one continued.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = answer_with_token)]
pub struct Resume {
    /// The token of a wait, with its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenText>,
    /// The answer to that wait.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub answer: Option<NewAnswer>,
    /// The caller's environment.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}
