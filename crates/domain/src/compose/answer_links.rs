//! Answer links of a wait: a token for each option that may be chosen from elsewhere. Newer links take the place of those that were
//! made for the same one before, so that what lies about in old messages is good for nothing.

use crate::event::{TokenMinted, TokenRevoked, TokenScope};
use crate::id::WaitId;
use crate::line::Draft;
use crate::session::SessionState;
use crate::time::Timestamp;
use crate::token::{Presented, Token, TokenIndex, TokenState};

/// Answer links that are wanted.
#[derive(Debug, Clone)]
pub struct NewLinks<'a> {
    /// The wait.
    pub wait_id: WaitId,
    /// For whom: one sink of notifications, or one caller. Links of others stay good.
    pub by: &'a str,
    /// The options by their ids, each with its token.
    pub tokens: &'a [(String, Presented)],
    /// Until when, unless the wait ends earlier.
    pub expires_at: Timestamp,
}

/// Composes the answer links of an open wait: `token.revoked`… of those made for the same one before, `token.minted` for each
/// option. Returns them with when they expire; none if the wait is not open.
pub fn mint(
    state: &SessionState,
    tokens: &TokenIndex,
    new: &NewLinks<'_>,
) -> Option<(Vec<Draft>, Timestamp)> {
    let NewLinks { wait_id, by, .. } = *new;
    let run = state.open_run()?;
    let expires_at = run.wait(wait_id)?.deadline_at.map_or(new.expires_at, |end| end.min(new.expires_at));
    let is_former = |token: &Token| {
        token.scope.wait_id == wait_id
            && token.scope.option_id.is_some()
            && token.by.as_deref() == Some(by)
            && token.state == TokenState::Active
    };
    let former = tokens.tokens.iter().filter(|(_, token)| is_former(token)).map(|(id, _)| {
        let (reason, by) = ("replaced".into(), Some(by.to_owned().into()));
        Draft::from(TokenRevoked { resume_token_id: *id, wait_id: Some(wait_id), reason, by })
    });
    let minted = new.tokens.iter().map(|(option_id, token)| {
        let option_id = Some(option_id.clone());
        Draft::from(TokenMinted {
            resume_token_id: token.id,
            wait_id,
            secret_hash: token.secret_hash().to_owned().into(),
            scope: TokenScope { session_id: state.id, run_id: run.run_id, wait_id, option_id },
            expires_at: Some(expires_at),
            by: Some(by.to_owned().into()),
        })
    });
    Some((former.chain(minted).collect(), expires_at))
}
