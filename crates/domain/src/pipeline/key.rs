//! The key of a step: SHA-256 over the canonical JSON (RFC 8785) of everything that its result hangs on. The same work has the same
//! key on every machine and in every version, and the second review of a run has another one than the first.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

use crate::blob_id::BlobId;
use crate::event::{AgentConfig, AgentIdentity, InputValue, StageConfig, TaskConfig};
use crate::id::{StepId, StepKey};

/// The version of the object that is hashed.
const VERSION: u32 = 1;

/// The largest whole number that every reader of JSON reads as it is written: 2⁵³ − 1.
pub const MAX_INTEGER: i64 = 9_007_199_254_740_991;

/// Why a step has no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A number that is not read everywhere as it is written.
    #[error(
        "inputs.{input} is {number}: whole numbers go from -{MAX_INTEGER} to {MAX_INTEGER}; write it as a text"
    )]
    IntegerTooLarge {
        /// The input.
        input: String,
        /// The number.
        number: i64,
    },
    /// A number that JSON does not have.
    #[error("inputs.{input} is not a finite number")]
    NotFinite {
        /// The input.
        input: String,
    },
    /// A file that is not there.
    #[error("inputs.{input}: there is no file {path} in the workspace")]
    FileMissing {
        /// The input.
        input: String,
        /// The file.
        path: String,
    },
    /// It cannot be written as canonical JSON.
    #[error("the inputs of the step cannot be written as canonical JSON")]
    Canonical(#[source] serde_json::Error),
}

/// The inputs of a task as they count: the content of a file and not its path.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct StepInputs(Box<RawValue>);

#[derive(Serialize)]
#[serde(untagged)]
enum CountedInput<'a> {
    Text(&'a str),
    Integer(i64),
    Float(f64),
    File { file: BlobId },
}

impl StepInputs {
    /// Returns the inputs of a task; `content` tells what a file has in the tree that the step begins with. What canonical JSON
    /// would write otherwise than it is meant is refused here: it rounds large numbers, and writes null for those that are none.
    pub fn of(task: &TaskConfig, content: impl Fn(&str) -> Option<BlobId>) -> Result<StepInputs, KeyError> {
        let counted = task.inputs.iter().map(|(name, value)| {
            let input = || name.to_owned();
            let counted = match value {
                InputValue::Text(text) => CountedInput::Text(text),
                InputValue::Integer(number) if number.unsigned_abs() > MAX_INTEGER.unsigned_abs() => {
                    return Err(KeyError::IntegerTooLarge { input: input(), number: *number });
                }
                InputValue::Integer(number) => CountedInput::Integer(*number),
                InputValue::Float(number) if !number.is_finite() => {
                    return Err(KeyError::NotFinite { input: input() });
                }
                InputValue::Float(number) => CountedInput::Float(*number),
                InputValue::File(path) => {
                    let file = content(path)
                        .ok_or_else(|| KeyError::FileMissing { input: input(), path: path.clone() })?;
                    CountedInput::File { file }
                }
            };
            Ok((name.as_str(), counted))
        });
        let counted = counted.collect::<Result<BTreeMap<_, _>, KeyError>>()?;
        let has_fractions = counted.values().any(|value| matches!(value, CountedInput::Float(_)));
        canonical_map(&counted, !has_fractions).map(StepInputs)
    }

    /// Returns the hash of the inputs.
    pub fn hash(&self) -> BlobId {
        BlobId::of(self.0.get().as_bytes())
    }
}

/// What counts of an agent: who it is, and not what its role is called. All of it is null where a command checks. Its members are in
/// the order of canonical JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AgentKey<'a> {
    command: Option<&'a [String]>,
    model: Option<&'a str>,
    name: Option<&'a str>,
}

impl<'a> AgentKey<'a> {
    /// Returns what counts of an agent of a project.
    pub fn of(agent: &'a AgentConfig) -> AgentKey<'a> {
        AgentKey {
            name: agent.agent.as_deref(),
            command: agent.command.as_deref(),
            model: agent.model.as_deref(),
        }
    }

    /// Returns the identity that is recorded of an agent with this name in the configuration.
    pub fn identity(&self, role: &str, version: Option<String>) -> Result<AgentIdentity, KeyError> {
        let mut bytes = Vec::with_capacity(256);
        write_in_order(self, &mut bytes)?;
        let command_hash = BlobId::of(&bytes);
        Ok(AgentIdentity { name: role.to_owned(), version, command_hash })
    }
}

/// Everything that the result of a step hangs on.
#[derive(Debug, Clone, Copy)]
pub struct KeyParts<'a> {
    /// The step.
    pub step: &'a StepId,
    /// Its stage.
    pub stage: &'a StageConfig,
    /// The task.
    pub task_id: &'a str,
    /// The tree that it begins with.
    pub from: BlobId,
    /// Who works; the default where a command checks.
    pub agent: AgentKey<'a>,
    /// What the agent is told, with everything put in.
    pub prompt: Option<&'a str>,
    /// The inputs of the task.
    pub inputs: &'a StepInputs,
}

/// What is hashed. Its members are in the order of canonical JSON, and none is a number with a fraction: written as it stands it is
/// canonical, but for maps whose names others chose.
#[derive(Serialize)]
struct Hashed<'a> {
    action: &'a str,
    agent: AgentKey<'a>,
    check: Option<&'a [String]>,
    from: BlobId,
    inputs: &'a StepInputs,
    outcomes: &'a RawValue,
    prompt: Option<&'a str>,
    round: u32,
    task_id: &'a str,
    v: u32,
}

impl KeyParts<'_> {
    /// Returns the key.
    pub fn key(&self) -> Result<StepKey, KeyError> {
        let mut hasher = Hasher(Sha256::new());
        self.write(&mut hasher)?;
        Ok(StepKey::from_bytes(hasher.0.finalize().into()))
    }

    /// Writes the bytes that are hashed.
    fn write(&self, to: impl io::Write) -> Result<(), KeyError> {
        let hashed = Hashed {
            action: &self.step.stage,
            agent: self.agent,
            check: self.stage.check.as_deref(),
            from: self.from,
            inputs: self.inputs,
            outcomes: &canonical_map(&self.stage.outcomes, true)?,
            prompt: self.prompt,
            round: self.step.round,
            task_id: self.task_id,
            v: VERSION,
        };
        write_in_order(&hashed, to)
    }
}

/// A hasher that is written to.
struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes canonical JSON.
fn canonical(value: &impl Serialize) -> Result<Box<RawValue>, KeyError> {
    let text = serde_json_canonicalizer::to_string(value).map_err(KeyError::Canonical)?;
    RawValue::from_string(text).map_err(KeyError::Canonical)
}

/// Writes a map as canonical JSON. Names of ASCII alone are in its order already; the values of such a map need no more than to be
/// written if they are canonical as they stand.
fn canonical_map<N: AsRef<str> + Serialize + Ord>(
    map: &BTreeMap<N, impl Serialize>,
    has_canonical_values: bool,
) -> Result<Box<RawValue>, KeyError> {
    if has_canonical_values && map.keys().all(|name| name.as_ref().is_ascii()) {
        return to_raw_value(map).map_err(KeyError::Canonical);
    }
    canonical(map)
}

/// Writes JSON of which the members are in the order of canonical JSON already.
fn write_in_order(value: &impl Serialize, to: impl io::Write) -> Result<(), KeyError> {
    serde_json::to_writer(to, value).map_err(KeyError::Canonical)
}

#[cfg(test)]
mod tests;
