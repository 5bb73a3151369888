//! What can be asked of the daemon, as callers say it.

use std::collections::BTreeMap;

use rekindle_domain::event::{OnUncertain, ResumePolicy};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A session to be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Where the agent works: an absolute path.
    pub working_dir: String,
    /// Who answers.
    pub agent: AgentChoice,
    /// A short title; made from the prompt if there is none.
    #[serde(default)]
    pub title: Option<String>,
    /// The first prompt.
    #[serde(default)]
    pub prompt: Option<Content>,
    /// The model asked for.
    #[serde(default)]
    pub model: Option<String>,
    /// The agent's mode asked for.
    #[serde(default)]
    pub mode: Option<String>,
    /// What is answered to permission requests without asking anyone.
    #[serde(default)]
    pub permissions: Permissions,
    /// How long a question may wait for its answer, in seconds; for ever without it.
    #[serde(default)]
    pub wait_timeout_s: Option<u64>,
    /// Whether it continues by itself after an interruption.
    #[serde(default)]
    pub resume: ResumePolicy,
    /// What uncertain tool calls do to that.
    #[serde(default)]
    pub on_uncertain: OnUncertain,
    /// The caller's environment, filtered here.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Which agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the agent is a known agent's name, or an object with `profile` and `command`")]
pub enum AgentChoice {
    /// One of the known ones.
    Known(String),
    /// Any command.
    Command {
        /// How its lines are read: `acp` or `exec`.
        profile: String,
        /// The command.
        command: Vec<String>,
    },
}

/// What is answered to permission requests without asking anyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// Someone is asked.
    #[default]
    Ask,
    /// Yes, once.
    Allow,
    /// No, once.
    Deny,
}

/// What is said to an agent: text, or blocks as its protocol has them.
#[derive(Debug)]
pub struct Content(pub Box<RawValue>);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        Ok(Content(Box::deserialize(deserializer)?))
    }
}

/// A message to a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// The message.
    pub content: Content,
    /// The caller's environment, for an agent that has to be launched.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// What may be changed of a session.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Whether it continues by itself.
    #[serde(default)]
    pub resume: Option<ResumePolicy>,
    /// What uncertain tool calls do to that.
    #[serde(default)]
    pub on_uncertain: Option<OnUncertain>,
}

/// A session to be resumed: a wait answered by its token, or an interrupted one continued.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The token of a wait, with its secret.
    #[serde(default)]
    pub token: Option<String>,
    /// The answer to that wait.
    #[serde(default)]
    pub answer: Option<NewAnswer>,
    /// The caller's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// An answer to a wait: exactly one of option, option_id, text and form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAnswer {
    /// The kind of an option: `allow_once`, `allow_always`, `reject_once`, `reject_always`, `accept`, `decline`.
    #[serde(default)]
    pub option: Option<String>,
    /// One of the agent's own options.
    #[serde(default)]
    pub option_id: Option<String>,
    /// Words.
    #[serde(default)]
    pub text: Option<String>,
    /// A filled-in form.
    #[serde(default)]
    pub form: Option<Box<RawValue>>,
    /// The token, for a caller who is not otherwise known.
    #[serde(default)]
    pub token: Option<String>,
}

/// Which sessions are listed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// With this status; several, divided by commas.
    #[serde(default)]
    pub status: Option<String>,
    /// With this agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// In this directory, or below it.
    #[serde(default)]
    pub cwd: Option<String>,
    /// With these words in the title.
    #[serde(default)]
    pub q: Option<String>,
    /// Most to be listed.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Where the list goes on.
    #[serde(default)]
    pub cursor: Option<String>,
}
