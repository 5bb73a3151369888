//! Time runs out: of tokens, and of what programs wait for.

use crate::event::{Event, ResumeHow, TokenExpired};
use crate::id::TokenId;
use crate::line::Draft;
use crate::session::{SessionState, Wait};
use crate::time::{Moment, Now};
use crate::token::TokenIndex;

use super::wait::{ended, revocations};

/// Composes what has run out and of which no record says so yet: `token.expired`…, and for every wait of a program that is
/// over `token.revoked`… of the tokens that have not expired + `run.resumed`. Empty once it is recorded.
///
/// The own token of a wait of the agent's is left alone while the wait is open: it ends with the wait, which is cancelled
/// then. What a program waits for ends as `timeout`, and its run goes on: no agent is kept by it.
pub fn expire(state: &SessionState, tokens: &TokenIndex, now: Now) -> Vec<Draft> {
    let moment = Moment { now, newest: state.updated_at };
    let waits = state.open_run().map(|run| run.waits.as_slice()).unwrap_or_default();
    let own = |id: TokenId| waits.iter().any(|wait| !wait.kind.is_outside() && wait.resume_token_id == id);
    let is_over = |wait: &Wait| {
        wait.kind.is_outside() && wait.deadline_at.is_some_and(|deadline| moment.is_past(deadline))
    };
    let mut records: Vec<Draft> = Vec::new();
    let mut expired: Vec<TokenId> = Vec::new();
    for (resume_token_id, token) in tokens.expired(moment).filter(|(id, _)| !own(*id)) {
        expired.push(resume_token_id);
        records.push(TokenExpired { resume_token_id, wait_id: Some(token.scope.wait_id) }.into());
    }
    let Some(run) = state.open_run() else { return records };
    for wait in run.waits.iter().filter(|wait| is_over(wait)) {
        let is_left = |draft: &Draft| match &draft.event {
            Event::TokenRevoked(revoked) => !expired.contains(&revoked.resume_token_id),
            _ => true,
        };
        records.extend(revocations(tokens, wait.wait_id, None, "timeout").into_iter().filter(is_left));
        records.push(ended(run.run_id, wait.wait_id, ResumeHow::Timeout, "deadline"));
    }
    records
}

#[cfg(test)]
mod tests;
