//! Names of the steps of a pipeline run: which stage in which round, and the key that the same work has wherever it is done.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blob_id::BlobId;
use crate::{hex, text_form};

/// The id of a step within its run: its stage and its round. Within a round a run only goes forward, so there is one step of each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// The stage's name.
    pub stage: String,
    /// The round, from 1.
    pub round: u32,
}

impl StepId {
    /// Returns the id of the command that an agent is sent at an attempt of this step.
    pub fn command_id(&self, attempt: u32) -> String {
        format!("cmd-{self}-{attempt}")
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stage, self.round)
    }
}

/// A text that is no id of a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a step's name is its stage, a hyphen and its round, such as review-2")]
pub struct BadStepId;

impl FromStr for StepId {
    type Err = BadStepId;
    fn from_str(text: &str) -> Result<StepId, BadStepId> {
        let (stage, digits) = text.rsplit_once('-').ok_or(BadStepId)?;
        // One way to write it: no sign, and no zero in front.
        let is_number = digits.starts_with(|c| matches!(c, '1'..='9'));
        if !is_number || !is_plain_name(stage) {
            return Err(BadStepId);
        }
        Ok(StepId { stage: stage.to_owned(), round: digits.parse().map_err(|_| BadStepId)? })
    }
}

impl Serialize for StepId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_form::read(deserializer, "the id of a step")
    }
}

/// Longest name of a stage, an agent, a pipeline or a task of a project.
pub const MAX_NAME: usize = 64;

/// Tells whether a text may name a stage, an agent, a pipeline or a task of a project: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. Some become
/// names of directories, so nothing else is accepted.
pub fn is_plain_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The key of a step: the hash of everything that its result hangs on, written as `ik:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey([u8; 32]);

/// What every key begins with.
const KEY_PREFIX: &str = "ik:";

impl StepKey {
    /// Returns the key that these bytes of a hash are.
    pub const fn from_bytes(bytes: [u8; 32]) -> StepKey {
        StepKey(bytes)
    }

    /// Returns the name of the file in which a cache has the result under this key.
    pub fn file_name(&self) -> String {
        format!("ik-{}.json", self.digits())
    }

    /// Returns the key whose result is in a file with this name.
    pub fn of_file_name(name: &str) -> Option<StepKey> {
        let digits = name.strip_prefix("ik-")?.strip_suffix(".json")?;
        format!("{KEY_PREFIX}{digits}").parse().ok()
    }

    /// Returns the key as the name of a blob is written: 64 lowercase hex digits.
    fn digits(&self) -> BlobId {
        BlobId::from_bytes(self.0)
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", self.digits())
    }
}

impl fmt::Debug for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no key of a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key of a step is {KEY_PREFIX} and 64 lowercase hex digits")]
pub struct BadStepKey;

impl FromStr for StepKey {
    type Err = BadStepKey;
    fn from_str(text: &str) -> Result<StepKey, BadStepKey> {
        let digits = text.strip_prefix(KEY_PREFIX).ok_or(BadStepKey)?;
        hex::decode(digits.as_bytes()).map(StepKey).ok_or(BadStepKey)
    }
}

impl Serialize for StepKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_form::read(deserializer, "the key of a step")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_named_in_one_way() {
        let step = StepId { stage: "spec-maintain".into(), round: 12 };
        assert_eq!(
            (step.to_string().as_str(), step.to_string().parse()),
            ("spec-maintain-12", Ok(step.clone()))
        );
        assert_eq!(step.command_id(3), "cmd-spec-maintain-12-3");
        for bad in
            ["", "review", "review-", "-1", "review-0", "review-01", "review-+1", "../x-1", "a b-1", "-a-1"]
        {
            assert_eq!(bad.parse::<StepId>(), Err(BadStepId), "{bad}");
        }
    }

    #[test]
    fn a_key_is_written_in_one_way() {
        let key = StepKey::from_bytes([0xab; 32]);
        let text = format!("ik:{}", "ab".repeat(32));
        assert_eq!((key.to_string(), text.parse()), (text.clone(), Ok(key)));
        assert_eq!(key.file_name(), format!("ik-{}.json", "ab".repeat(32)));
        assert_eq!(StepKey::of_file_name(&key.file_name()), Some(key));
        for foreign in ["ik-ab.json", "ik-.json", &format!("{}.tmp", key.file_name()), "notes.txt"] {
            assert_eq!(StepKey::of_file_name(foreign), None, "{foreign}");
        }
        for bad in ["", "ik:", &text[3..], &text.to_uppercase(), "ik-ab", &format!("{text}0")] {
            assert_eq!(bad.parse::<StepKey>(), Err(BadStepKey), "{bad}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        let long = "a".repeat(MAX_NAME);
        for good in ["a", "T-0042", "spec_maintain", "0", long.as_str()] {
            assert!(is_plain_name(good), "{good}");
        }
        let longer = "a".repeat(MAX_NAME + 1);
        for bad in ["", "-a", "_a", "a.b", "a/b", "é", "a b", "a\n", longer.as_str()] {
            assert!(!is_plain_name(bad), "{bad}");
        }
    }
}
