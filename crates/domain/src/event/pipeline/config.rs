//! The configuration of pipelines, as `rekindle.toml` says it and as a ledger keeps it: agents, tasks, and the stages that these go
//! through. What is wrong with one is told by [`crate::pipeline::validate`]; here is only its shape, so that a ledger is read whatever it says.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blob_id::BlobId;
use crate::string_enum::string_enums;
use crate::whole_number::positive;

/// The name of the pipeline that a task goes through if nobody names another.
pub const DEFAULT_PIPELINE: &str = "default";

/// How long nothing may be heard of an attempt before it counts as stalled, if its stage does not say: half an hour.
pub const DEFAULT_STALLED_AFTER_S: u64 = 30 * 60;

/// How often an `ndjson` agent says that it is alive, if the configuration does not say.
pub const DEFAULT_HEARTBEAT_S: u64 = 30;

/// Rounds of a pipeline that does not say.
pub const DEFAULT_ROUNDS: u32 = 3;

/// Keys that this version does not know: kept, so that a ledger loses nothing, and named when a file is checked.
pub type UnknownKeys = BTreeMap<String, serde_json::Value>;

string_enums! {
    /// What becomes of a step whose agent was cut.
    #[derive(schemars::JsonSchema)]
    pub enum OnCut {
        /// A person is asked.
        Ask = "ask",
        /// The files are made what they were, and the step begins again.
        Restore = "restore",
        /// The agent goes on in its session with the files as they are.
        Continue = "continue",
    }

    /// What becomes of files that are not as the ledger expects them.
    #[derive(Default, schemars::JsonSchema)]
    pub enum OnDrift {
        /// Nothing goes on until a person decides.
        #[default]
        Stop = "stop",
        /// They are made what is expected.
        Restore = "restore",
        /// They are taken as they are.
        Accept = "accept",
    }
}

/// A project's `rekindle.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProjectConfig {
    /// The version of the file's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Who works, by the names that stages use.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentConfig>,
    /// What is to be done.
    #[serde(default)]
    pub tasks: Vec<TaskConfig>,
    /// What tasks go through.
    #[serde(default)]
    pub pipelines: BTreeMap<String, PipelineConfig>,
    /// Anything else.
    #[serde(flatten)]
    pub unknown: UnknownKeys,
}

/// An agent of a project: a known one by its name, or a command and its profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentConfig {
    /// The known agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The command of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// How it speaks: `acp`, `ndjson` or `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of environment variables that it gets from the caller; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How many seconds are between two heartbeats of an `ndjson` agent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub heartbeat_s: Option<u64>,
    /// Anything else.
    #[serde(flatten)]
    pub unknown: UnknownKeys,
}

/// A task of a project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskConfig {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// What is wanted.
    #[serde(default)]
    pub goal: String,
    /// What it is told beside that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputValue>,
    /// Anything else.
    #[serde(flatten)]
    pub unknown: UnknownKeys,
}

/// A pipeline: stages that are run in their order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PipelineConfig {
    /// How often its stages are gone through at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<u32>,
    /// What becomes of a step whose agent was cut, if whoever starts a run does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cut: Option<OnCut>,
    /// Its stages.
    #[serde(default)]
    pub stages: Vec<StageConfig>,
    /// Anything else.
    #[serde(flatten)]
    pub unknown: UnknownKeys,
}

/// A stage of a pipeline: an agent with a prompt, or a command that checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageConfig {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Who works: a name in `agents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The template of what the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The command that checks, word by word: nothing goes through a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Vec<String>>,
    /// Whether files may be others afterwards.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub writes: bool,
    /// Where each outcome that the agent may name leads: `next`, `fail`, or a stage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, String>,
    /// Where a failure leads: a stage, or `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_fail: Option<String>,
    /// Other runs may use its results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache: bool,
    /// How many seconds an attempt may take; it is ended then. Without it nobody ends it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub deadline_s: Option<u64>,
    /// After how many seconds without a sign of life an attempt is shown as stalled.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub stalled_after_s: Option<u64>,
    /// Anything else.
    #[serde(flatten)]
    pub unknown: UnknownKeys,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Default for StageConfig {
    fn default() -> StageConfig {
        StageConfig {
            name: String::new(),
            agent: None,
            prompt: None,
            check: None,
            writes: true,
            outcomes: BTreeMap::new(),
            on_fail: None,
            cache: false,
            deadline_s: None,
            stalled_after_s: None,
            unknown: UnknownKeys::new(),
        }
    }
}

impl PipelineConfig {
    /// Returns how often its stages are gone through at most.
    pub fn rounds(&self) -> u32 {
        self.max_rounds.unwrap_or(DEFAULT_ROUNDS)
    }

    /// Returns the stage with a name and its place in the order.
    pub fn stage(&self, name: &str) -> Option<(usize, &StageConfig)> {
        self.stages.iter().enumerate().find(|(_, stage)| stage.name == name)
    }
}

impl StageConfig {
    /// Returns how many milliseconds an attempt may take; none if it may take as long as it likes.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.deadline_s.map(|seconds| seconds.saturating_mul(1000))
    }

    /// Returns how long nothing may be heard of an attempt before it counts as stalled.
    pub fn stalled_after(&self) -> Duration {
        Duration::from_secs(self.stalled_after_s.unwrap_or(DEFAULT_STALLED_AFTER_S))
    }
}

impl AgentConfig {
    /// Tells whether it is spoken with in JSON objects, one a line.
    pub fn speaks_ndjson(&self) -> bool {
        self.profile.as_deref() == Some("ndjson")
    }

    /// Returns how long is between two heartbeats; none of an agent that has none.
    pub fn heartbeat(&self) -> Option<Duration> {
        let every = Duration::from_secs(self.heartbeat_s.unwrap_or(DEFAULT_HEARTBEAT_S));
        self.speaks_ndjson().then_some(every)
    }
}

impl ProjectConfig {
    /// Returns the task with an id.
    pub fn task(&self, id: &str) -> Option<&TaskConfig> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

/// An input of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum InputValue {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A file of the workspace, whose content counts.
    File(String),
}

impl InputValue {
    /// Returns it as a prompt has it; nothing of a file, whose content is elsewhere.
    pub fn to_text(&self) -> Option<String> {
        match self {
            InputValue::Text(text) => Some(text.clone()),
            InputValue::Integer(number) => Some(number.to_string()),
            InputValue::Float(number) => Some(number.to_string()),
            InputValue::File(_) => None,
        }
    }
}

impl Serialize for InputValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            InputValue::Text(text) => serializer.serialize_str(text),
            InputValue::Integer(number) => serializer.serialize_i64(*number),
            InputValue::Float(number) => serializer.serialize_f64(*number),
            InputValue::File(path) => serializer.collect_map([("file", path)]),
        }
    }
}

impl<'de> Deserialize<'de> for InputValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InputValue, D::Error> {
        deserializer.deserialize_any(InputVisitor)
    }
}

struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = InputValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or { file = \"path\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<InputValue, E> {
        Ok(InputValue::Text(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<InputValue, E> {
        Ok(InputValue::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<InputValue, E> {
        let whole = i64::try_from(number)
            .map_err(|_| E::custom(format_args!("{number} is too large for a number")))?;
        Ok(InputValue::Integer(whole))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<InputValue, E> {
        Ok(InputValue::Float(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InputValue, A::Error> {
        let Some(key) = map.next_key::<String>()? else { return Err(A::Error::missing_field("file")) };
        if key != "file" {
            return Err(A::Error::unknown_field(&key, &["file"]));
        }
        let path = map.next_value()?;
        match map.next_key::<String>()? {
            Some(key) => Err(A::Error::unknown_field(&key, &["file"])),
            None => Ok(InputValue::File(path)),
        }
    }
}

/// The identity of an agent that worked at a step, or is to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its name in the configuration.
    pub name: String,
    /// The version that it says itself, if it is known. It is recorded, and no part of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The hash of what is configured of it: known name, command and model.
    pub command_hash: BlobId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_and_written_alike_and_what_is_not_known_stays() {
        let text = r#"{"version":1,"agents":{"builder":{"agent":"claude","env":["KEY"]}},"tasks":[{"id":"T-1","goal":"g","inputs":{"a":"x","b":7,"c":0.5,"d":{"file":"p"}}}],"pipelines":{"default":{"max_rounds":2,"stages":[{"name":"review","agent":"builder","writes":false,"outcomes":{"ok":"next"},"cache":true,"deadline_s":60,"colour":"red"}]}}}"#;
        let config: ProjectConfig = serde_json::from_str(text).expect("a configuration");
        assert_eq!(serde_json::to_string(&config).expect("JSON"), text);
        let (_, stage) = config.pipelines["default"].stage("review").expect("a stage");
        assert_eq!((stage.writes, stage.deadline_ms()), (false, Some(60_000)));
        assert_eq!(stage.unknown["colour"], "red");
        let empty: ProjectConfig = serde_json::from_str("{}").expect("everything may be missing");
        assert_eq!(empty, ProjectConfig::default());
        let stage: StageConfig = serde_json::from_str("{}").expect("everything may be missing");
        assert_eq!((stage.writes, stage.deadline_ms(), stage.stalled_after().as_secs()), (true, None, 1800));
    }

    #[test]
    fn an_input_is_a_text_a_number_or_a_file() {
        let read = |text: &str| serde_json::from_str::<InputValue>(text).map_err(|error| error.to_string());
        assert_eq!(read("-7"), Ok(InputValue::Integer(-7)));
        assert_eq!(read("7.0"), Ok(InputValue::Float(7.0)));
        for bad in [
            "true",
            "null",
            "[1]",
            "{}",
            r#"{"path":"x"}"#,
            r#"{"file":"a","b":1}"#,
            r#"{"file":7}"#,
            "9223372036854775808",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
