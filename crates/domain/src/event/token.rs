//! Events of resume tokens. Every step of a token's life is a record; a secret is never in one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::id::{RunId, SessionId, TokenId, WaitId};
use crate::time::Timestamp;

/// What a token is good for: one wait of one run of one session, and one answer to it if it names an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenScope {
    /// The session.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// The wait.
    pub wait_id: WaitId,
    /// The only option that it answers with, if it is that of an answer link; without one it takes any answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}

impl TokenScope {
    /// Tells whether a token of this scope may be used for what is wanted of it: the same wait, and its option if it has one.
    pub fn covers(&self, wanted: &TokenScope) -> bool {
        let same_wait = (self.session_id, self.run_id, self.wait_id)
            == (wanted.session_id, wanted.run_id, wanted.wait_id);
        same_wait && (self.option_id.is_none() || self.option_id == wanted.option_id)
    }
}

/// A token was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenMinted<'a> {
    /// The token.
    pub resume_token_id: TokenId,
    /// The wait it ends.
    pub wait_id: WaitId,
    /// SHA-256 of its secret, in hex.
    #[serde(borrow)]
    pub secret_hash: Cow<'a, str>,
    /// What it is good for.
    pub scope: TokenScope,
    /// Until when, if not for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// For whom it was made.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A token was used; the first use wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenConsumed<'a> {
    /// The token.
    pub resume_token_id: TokenId,
    /// The wait it ended.
    pub wait_id: WaitId,
    /// SHA-256 of the canonical answer, in hex, so that the same answer again gets the first result.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub answer_hash: Option<Cow<'a, str>>,
    /// By whom.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A token was taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenRevoked<'a> {
    /// The token.
    pub resume_token_id: TokenId,
    /// Its wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_id: Option<WaitId>,
    /// Why: `answered`, `cancelled`, `interrupted`, `timeout`, `replaced` by newer links.
    #[serde(borrow, default)]
    pub reason: Cow<'a, str>,
    /// By whom.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A token's time ran out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenExpired {
    /// The token.
    pub resume_token_id: TokenId,
    /// Its wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_id: Option<WaitId>,
}
