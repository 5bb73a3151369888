//! Events of the steps of a pipeline run: meant to be done, begun, finished, cut.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::AgentIdentity;
use crate::blob_id::BlobId;
use crate::event::session::is_false;
use crate::event::{FilesTouched, Raw, Usage};
use crate::id::{RunId, SessionId, StepId, StepKey};
use crate::string_enum::string_enums;
use crate::time::Timestamp;

string_enums! {
    /// Why an attempt at a step came to nothing.
    #[derive(schemars::JsonSchema)]
    pub enum StepCut {
        /// Its agent died, or its machine did.
        AgentGone = "agent_gone",
        /// Its run was cancelled.
        Cancelled = "cancelled",
        /// Its agent's provider said that the same may succeed later.
        TryLater = "try_later",
        /// Its agent could not be launched.
        NotLaunched = "not_launched",
        /// It was to go on with an agent that came back without its session.
        NotContinued = "not_continued",
        /// A reason a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// A step is to be done. On disk before anything acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepIntended<'a> {
    /// The step.
    pub step_id: StepId,
    /// Its stage.
    #[serde(borrow)]
    pub stage: Cow<'a, str>,
    /// Its round.
    pub round: u32,
    /// What is asked for: the name of its stage.
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    /// Its key.
    pub key: StepKey,
    /// The tree that it begins with.
    pub from: BlobId,
    /// Who is to work; nobody if a command checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentIdentity>>,
    /// The hash of the task's inputs, with the contents of files.
    pub inputs_hash: BlobId,
}

/// An attempt at a step began: in one append with the first records of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepBegan {
    /// The step.
    pub step_id: StepId,
    /// The session in which it is done.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The agent had ended its turn without a valid outcome, and is asked for it: once an attempt.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reminder: bool,
}

/// A payload that is a blob, because it is too large for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// The blob.
    pub blob: BlobId,
    /// Its bytes.
    pub size: u64,
}

/// What an agent said of its work at a step, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepCounts {
    /// Events.
    pub events: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Log lines.
    pub logs: u64,
}

/// A step is finished. It is never run again: whoever needs its result has it here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished<'a> {
    /// The step.
    pub step_id: StepId,
    /// Its key, as it was intended.
    pub key: StepKey,
    /// What came of it: `completed`, `failed`, or one of the stage's outcomes.
    #[serde(borrow)]
    pub outcome: Cow<'a, str>,
    /// What its agent said with that, as JSON.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Raw<'a>>,
    /// The same, if it is too large for a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_blob: Option<BlobRef>,
    /// The tree that it left.
    pub to: BlobId,
    /// The files that are not what they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_touched: Option<Box<FilesTouched>>,
    /// What was used for it, over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The result was there before: nobody worked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// What its agent said, counted.
    #[serde(default)]
    pub counts: StepCounts,
}

/// An attempt at a step was cut: its agent is proven gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepInterrupted<'a> {
    /// The step.
    pub step_id: StepId,
    /// The attempt.
    pub attempt: u32,
    /// Why.
    pub reason: StepCut,
    /// For people.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// A moment at which its agent was proven dead; null if none is known.
    pub died_at: Option<Timestamp>,
    /// The tree that the attempt left; null if that could not be captured.
    pub tree: Option<BlobId>,
}
