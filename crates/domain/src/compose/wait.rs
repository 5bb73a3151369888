//! A wait opens with its own token, gets further ones, and ends without an answer: then all its tokens end with it.

use std::time::Duration;

use crate::event::{Raw, ResumeHow, RunResumed, RunWaiting, TokenMinted, TokenRevoked, TokenScope, WaitKind};
use crate::id::{RunId, SessionId, TokenId, WaitId};
use crate::line::Draft;
use crate::session::{Run, SessionState};
use crate::time::Timestamp;
use crate::token::{Presented, TokenIndex, TokenState, sha256_hex};

/// A wait as an agent or a program asks for it.
#[derive(Debug, Clone)]
pub struct NewWait {
    /// The run that waits.
    pub run_id: RunId,
    /// Its name.
    pub wait_id: WaitId,
    /// The name of its own token.
    pub resume_token_id: TokenId,
    /// The secret of its own token, which is shown to nobody: only its hash is kept.
    pub secret: [u8; 32],
    /// What is waited for.
    pub kind: WaitKind,
    /// The tool call that permission is asked for.
    pub tool_call_id: Option<String>,
    /// The request, whole.
    pub request: Raw<'static>,
    /// Who opens it, if it is not the agent.
    pub by: Option<String>,
    /// The caller's key, as it is stored.
    pub idempotency_key: Option<String>,
    /// When it opens.
    pub now: Timestamp,
    /// How long it waits, if not for ever.
    pub timeout: Option<Duration>,
}

/// Composes a wait: `run.waiting` + `token.minted`. Its own token expires with the wait, or never.
pub fn open(session_id: SessionId, new: NewWait) -> Vec<Draft> {
    let NewWait { run_id, wait_id, resume_token_id, .. } = new;
    let millis = |timeout: Duration| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    let deadline_at = new.timeout.map(|timeout| new.now.plus_millis(millis(timeout)));
    let waiting = RunWaiting {
        run_id,
        wait_id,
        wait_kind: new.kind,
        resume_token_id,
        deadline_at,
        tool_call_id: new.tool_call_id.map(Into::into),
        request: Some(new.request),
        by: new.by.map(Into::into),
        idempotency_key: new.idempotency_key.map(Into::into),
    };
    let minted = TokenMinted {
        resume_token_id,
        wait_id,
        secret_hash: sha256_hex(&new.secret).into(),
        scope: TokenScope { session_id, run_id, wait_id, option_id: None },
        expires_at: deadline_at,
        by: None,
    };
    vec![waiting.into(), minted.into()]
}

/// Returns the record of a further token for an open wait; none if it is not open.
pub fn further_token(
    state: &SessionState,
    wait_id: WaitId,
    token: &Presented,
    expires_at: Timestamp,
    by: &str,
) -> Option<TokenMinted<'static>> {
    let run = state.open_run().filter(|run| run.wait(wait_id).is_some())?;
    Some(TokenMinted {
        resume_token_id: token.id,
        wait_id,
        secret_hash: token.secret_hash().to_owned().into(),
        scope: TokenScope { session_id: state.id, run_id: run.run_id, wait_id, option_id: None },
        expires_at: Some(expires_at),
        by: Some(by.to_owned().into()),
    })
}

/// Composes the end of a wait that its agent takes back: `token.revoked`… + `run.resumed`.
pub fn withdraw(run_id: RunId, wait_id: WaitId, tokens: &TokenIndex) -> Vec<Draft> {
    let mut records = revocations(tokens, wait_id, None, "withdrawn");
    records.push(ended(run_id, wait_id, ResumeHow::Withdrawn, "agent"));
    records
}

/// Composes the end of what programs wait for on a run that ends: nobody is there any more for whom they asked.
pub(super) fn withdraw_with_run(run: &Run, tokens: &TokenIndex) -> Vec<Draft> {
    let mut records = Vec::new();
    for wait in run.waits.iter().filter(|wait| wait.kind.is_outside()) {
        records.extend(revocations(tokens, wait.wait_id, None, "run_ended"));
        records.push(ended(run.run_id, wait.wait_id, ResumeHow::Withdrawn, "daemon"));
    }
    records
}

/// Composes the end of every active token of a wait, except one.
pub(super) fn revocations(
    tokens: &TokenIndex,
    wait_id: WaitId,
    except: Option<TokenId>,
    reason: &'static str,
) -> Vec<Draft> {
    let active = tokens.tokens.iter().filter(|(id, token)| {
        token.scope.wait_id == wait_id && token.state == TokenState::Active && Some(**id) != except
    });
    let revoked = |(id, _): (&TokenId, _)| {
        TokenRevoked { resume_token_id: *id, wait_id: Some(wait_id), reason: reason.into(), by: None }.into()
    };
    active.map(revoked).collect()
}

/// Returns the record of a wait that ends without an answer.
pub(super) fn ended(run_id: RunId, wait_id: WaitId, how: ResumeHow, by: &str) -> Draft {
    RunResumed { run_id, wait_id, answer: None, by: Some(by.to_owned().into()), how, granted: None }.into()
}
