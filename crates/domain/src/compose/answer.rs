//! A wait is answered: its answer consumes one token, and no other one of the wait is good any more.

use crate::event::{InputQueued, Raw, ResumeHow, RunResumed, TokenConsumed};
use crate::id::{RunId, TokenId};
use crate::line::Draft;
use crate::session::Wait;
use crate::token::TokenIndex;

/// An answer to an open wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<'a> {
    /// Who gives it.
    pub by: &'a str,
    /// The token it comes with; without one it consumes the wait's own.
    pub token: Option<TokenId>,
    /// SHA-256 of the answer, in hex, by which the same one is known again.
    pub hash: String,
    /// What is recorded of it.
    pub answer: Option<Raw<'static>>,
    /// Whether it gives a permission that was asked for.
    pub granted: Option<bool>,
}

impl Answer<'_> {
    /// Returns the token that the answer consumes.
    pub fn consumes(&self, wait: &Wait) -> TokenId {
        self.token.unwrap_or(wait.resume_token_id)
    }
}

/// Composes an answer: `token.consumed` + `run.resumed` + `token.revoked`… of the rest, and the `input.queued` that tells an
/// agent of it. What a program waits for is told to no agent.
pub fn answer(
    run_id: RunId,
    wait: &Wait,
    tokens: &TokenIndex,
    given: Answer<'_>,
    told: Option<InputQueued<'static>>,
) -> Vec<Draft> {
    let (wait_id, consumed) = (wait.wait_id, given.consumes(wait));
    let Answer { by, hash, answer, granted, .. } = given;
    let by = || Some(by.to_owned().into());
    let mut records: Vec<Draft> = vec![
        TokenConsumed { resume_token_id: consumed, wait_id, answer_hash: Some(hash.into()), by: by() }.into(),
        RunResumed { run_id, wait_id, answer, by: by(), how: ResumeHow::Answered, granted }.into(),
    ];
    records.extend(super::wait::revocations(tokens, wait_id, Some(consumed), "answered"));
    records.extend(told.map(Draft::from));
    records
}
