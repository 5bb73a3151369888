//! Events of a stream: what followers are told besides the records themselves.

use std::borrow::Cow;

use rekindle_domain::id::SessionId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enums;
use crate::view::{PendingStep, WaitView};

string_enums! {
    /// What kind of message words belong to.
    pub enum DeltaKind {
        /// An answer.
        Message = "message",
        /// A thought.
        Thought = "thought",
    }
}

/// `delta`: words that are in no record yet.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The run.
    pub run_id: Option<String>,
    /// The message they belong to.
    pub message_id: String,
    /// `message` or `thought`.
    pub kind: DeltaKind,
    /// How many bytes of the message came before: who has more of it has seen these words.
    pub at: usize,
    /// The words.
    pub text: String,
}

/// `reset`: a log is not what its follower thinks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResetEvent")]
pub struct Reset {
    /// Its newest record.
    pub last_seq: u64,
}

/// `too_slow`: a follower is sent away.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TooSlowEvent")]
pub struct TooSlow {
    /// What to do.
    pub hint: Cow<'static, str>,
}

/// `session`: what became of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SessionEvent")]
pub struct SessionChanged<'a> {
    /// The session.
    pub id: SessionId,
    /// What it is doing.
    pub status: SessionStatus,
    /// Since when.
    pub since: Timestamp,
    /// The oldest open wait.
    pub wait: Option<Cow<'a, WaitView>>,
    /// Its newest record.
    pub last_seq: u64,
}

/// `deleted`: a session is gone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeletedEvent")]
pub struct SessionDeleted {
    /// The session.
    pub id: SessionId,
}

/// `pending`: what the step of a run of a pipeline that is not finished waits for is another thing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PipelinePendingEvent")]
pub struct PipelinePending {
    /// Where the run stands.
    pub status: RunStatus,
    /// The step that is not finished; null if there is none.
    pub pending: Option<PendingStep>,
}
