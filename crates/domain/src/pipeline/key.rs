//! The key of a step: SHA-256 over the canonical JSON (RFC 8785) of everything that its result hangs on. The same work has the same
//! key on every machine and in every version, and the second review of a run has another one than the first.

use std::collections::BTreeMap;

use serde::Serialize;
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
    #[error("inputs.{input} is no finite number")]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct StepInputs(BTreeMap<String, CountedInput>);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum CountedInput {
    Text(String),
    Integer(i64),
    Float(f64),
    File { file: BlobId },
}

impl StepInputs {
    /// Returns the inputs of a task; `content` tells what a file has in the tree that the step begins with. What canonical JSON
    /// would write otherwise than it is meant is refused here: it rounds large numbers, and writes null for those that are none.
    pub fn of(task: &TaskConfig, content: impl Fn(&str) -> Option<BlobId>) -> Result<StepInputs, KeyError> {
        let counted = task.inputs.iter().map(|(name, value)| {
            let input = || name.clone();
            let counted = match value {
                InputValue::Text(text) => CountedInput::Text(text.clone()),
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
            Ok((name.clone(), counted))
        });
        Ok(StepInputs(counted.collect::<Result<_, KeyError>>()?))
    }

    /// Returns the hash of the inputs.
    pub fn hash(&self) -> Result<BlobId, KeyError> {
        Ok(BlobId::of(&canonical(self)?))
    }
}

/// What counts of an agent: who it is, and not what its role is called. All of it is null where a command checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AgentKey<'a> {
    name: Option<&'a str>,
    command: Option<&'a [String]>,
    model: Option<&'a str>,
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
        let command_hash = BlobId::of(&canonical(self)?);
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

#[derive(Serialize)]
struct Hashed<'a> {
    v: u32,
    action: &'a str,
    task_id: &'a str,
    round: u32,
    from: BlobId,
    agent: AgentKey<'a>,
    prompt: Option<&'a str>,
    check: Option<&'a [String]>,
    outcomes: &'a BTreeMap<String, String>,
    inputs: &'a StepInputs,
}

impl KeyParts<'_> {
    /// Returns the key.
    pub fn key(&self) -> Result<StepKey, KeyError> {
        Ok(StepKey::from_bytes(Sha256::digest(self.canonical()?).into()))
    }

    /// Returns the bytes that are hashed.
    fn canonical(&self) -> Result<Vec<u8>, KeyError> {
        canonical(&Hashed {
            v: VERSION,
            action: &self.step.stage,
            task_id: self.task_id,
            round: self.step.round,
            from: self.from,
            agent: self.agent,
            prompt: self.prompt,
            check: self.stage.check.as_deref(),
            outcomes: &self.stage.outcomes,
            inputs: self.inputs,
        })
    }
}

fn canonical(value: &impl Serialize) -> Result<Vec<u8>, KeyError> {
    serde_json_canonicalizer::to_vec(value).map_err(KeyError::Canonical)
}

#[cfg(test)]
mod tests;
