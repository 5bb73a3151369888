//! Receipts: what became of a message, an answer, a continuation, or the making of a token.

use rekindle_domain::id::{MessageId, RunId, TokenId};
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enums;
use crate::token_text::TokenText;

string_enums! {
    /// How a session was continued.
    pub enum ResumeMethod {
        /// What was interrupted goes on.
        Continue = "continue",
        /// A wait was answered.
        Answer = "answer",
    }
}

/// A message that was taken.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MessageTaken {
    /// The message.
    pub message_id: MessageId,
    /// Its run, unless it waits for its turn.
    pub run_id: Option<RunId>,
    /// Its record.
    pub seq: u64,
    /// It waits for its turn.
    pub queued: bool,
}

/// An answer that was taken.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerTaken {
    /// The run that goes on.
    pub run_id: RunId,
    /// The token that was consumed.
    pub resume_token_id: Option<TokenId>,
}

/// A continuation that was begun.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The new run.
    pub run_id: RunId,
    /// How.
    pub method: ResumeMethod,
    /// Which attempt.
    pub attempt: u32,
}

/// A token, shown once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenShown {
    /// The token with its secret.
    pub token: TokenText,
    /// Until when it is good.
    pub expires_at: Timestamp,
}
