//! A cached result of a step: what came of it in one run, for others that come to a step with the same key. It is a file of its own,
//! read with suspicion: what is wrong with one costs a step that is done once more.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::outcome;
use crate::blob_id::BlobId;
use crate::event::{BlobRef, Raw, StageConfig, StepFinished};
use crate::id::{RunName, StepKey};
use crate::time::Timestamp;

/// What a file ends with: sixteen digits of BLAKE3 over everything before.
const HASH_BEGINS: &str = r#","h":""#;
const HASH_ENDS: &str = r#""}"#;
const HASH_DIGITS: usize = 16;

/// What stands for the agent of a stage where a command checks.
const CHECKS: &str = "check";

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachedResult<'a> {
    /// The key of the step.
    pub key: StepKey,
    /// The outcome.
    #[serde(borrow)]
    pub outcome: Cow<'a, str>,
    /// What its agent said with that, as JSON.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Raw<'a>>,
    /// The same, if it is a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_blob: Option<BlobRef>,
    /// The tree that it left. As long as the file is there, it is kept.
    pub to: BlobId,
    /// The run that came to it.
    pub made_by: RunName,
    /// When.
    pub at: Timestamp,
}

/// Why a file is no result that may be used.
#[derive(Debug, thiserror::Error)]
pub enum BadResult {
    /// It is not whole, or somebody has changed it.
    #[error("it was changed: its hash does not match")]
    Changed,
    /// It says something else than a result.
    #[error("it is not the result of a step")]
    NoResult(#[source] serde_json::Error),
    /// It is the result of another step.
    #[error("it is the result of {0}")]
    OtherKey(StepKey),
}

impl<'a> CachedResult<'a> {
    /// Returns what a cache keeps of a step that is finished. A failure is none: whoever tries again wants it done again.
    pub fn of(
        stage: &StageConfig,
        finished: &StepFinished<'a>,
        made_by: RunName,
        at: Timestamp,
    ) -> Option<CachedResult<'a>> {
        let keeps = stage.cache && !finished.cached && finished.outcome != outcome::FAILED;
        keeps.then(|| CachedResult {
            key: finished.key,
            outcome: finished.outcome.clone(),
            payload: finished.payload.clone(),
            payload_blob: finished.payload_blob,
            to: finished.to,
            made_by,
            at,
        })
    }

    /// Returns the bytes of the file.
    pub fn write(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.pop();
        let hash = hash(&bytes);
        for part in [HASH_BEGINS, &hash, HASH_ENDS] {
            bytes.extend_from_slice(part.as_bytes());
        }
        Ok(bytes)
    }

    /// Reads the file that is there for a key.
    pub fn read(bytes: &'a [u8], key: StepKey) -> Result<CachedResult<'a>, BadResult> {
        let end = HASH_BEGINS.len() + HASH_DIGITS + HASH_ENDS.len();
        let hashed = bytes.len().checked_sub(end).map_or(&[][..], |len| &bytes[..len]);
        let written = bytes[hashed.len()..].strip_prefix(HASH_BEGINS.as_bytes());
        let written = written.and_then(|rest| rest.strip_suffix(HASH_ENDS.as_bytes()));
        if written != Some(hash(hashed).as_bytes()) {
            return Err(BadResult::Changed);
        }
        let result: CachedResult<'a> = serde_json::from_slice(bytes).map_err(BadResult::NoResult)?;
        if result.key == key { Ok(result) } else { Err(BadResult::OtherKey(result.key)) }
    }

    /// Tells whether a step of a stage that begins with this tree may have come to it. The key says nothing of whether the stage may
    /// write.
    pub fn fits(&self, stage: &StageConfig, from: BlobId) -> bool {
        self.outcome != outcome::FAILED
            && outcome::is_outcome_of(stage, &self.outcome)
            && (stage.writes || self.to == from)
    }

    /// Copies what was borrowed.
    pub fn into_owned(self) -> CachedResult<'static> {
        CachedResult {
            outcome: Cow::Owned(self.outcome.into_owned()),
            payload: self.payload.map(Raw::into_owned),
            ..self
        }
    }
}

/// Returns the name of the directory in which a cache has the results of a stage: that of its agent.
pub fn cache_directory(stage: &StageConfig) -> &str {
    stage.agent.as_deref().unwrap_or(CHECKS)
}

fn hash(bytes: &[u8]) -> String {
    let mut digits = BlobId::of(bytes).to_string();
    digits.truncate(HASH_DIGITS);
    digits
}

#[cfg(test)]
mod tests;
