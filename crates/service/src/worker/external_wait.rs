//! What programs wait for on a run, and tokens whose time runs out: recorded by the worker of the session, so that nobody
//! answers, cancels and expires the same thing at once. No agent is told any of it.

use std::sync::Arc;

use rekindle_domain::event::{
    Event, ResumeHow, RunResumed, RunWaiting, TokenConsumed, TokenExpired, TokenMinted, TokenScope,
};
use rekindle_domain::id::{RunId, TokenId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{SessionState, Wait};
use rekindle_domain::time::{Moment, Now};
use rekindle_domain::token::{TokenIndex, sha256_hex};
use rekindle_store::commit::Current;

use super::{Answering, Opening, Worker};
use crate::code::Code;
use crate::core::{Core, millis, random};
use crate::crash::crash_point;
use crate::error::ServiceError;
use crate::live::{keep_large, revocations};
use crate::sessions::nothing_running;
use crate::view::AnswerTaken;

/// Most waits that may be open in a run at once: a bound for programs that forget theirs.
const MOST_OPEN: usize = 64;

impl Worker {
    /// Opens a wait on the run that goes on.
    pub(super) fn open_wait(&mut self, core: &Arc<Core>, new: &Opening) -> Result<WaitId, ServiceError> {
        let state = core.store.open_session(self.session)?.state;
        if let Some(key) = &new.key {
            for known in &state.wait_keys {
                if key.is(&known.key)? {
                    return Ok(known.wait_id);
                }
            }
        }
        let run = state.open_run().filter(|run| run.cancel.is_none()).ok_or_else(nothing_running)?;
        if run.waits.len() >= MOST_OPEN {
            let message = format!("{MOST_OPEN} waits of this run are open already");
            return Err(ServiceError::new(Code::QueueFull, message).hint("answer them: rekindle waits"));
        }
        let (run_id, now) = (run.run_id, core.time().steady);
        let (wait_id, resume_token_id) =
            (WaitId::mint(millis(now), random()?), TokenId::mint(millis(now), random()?));
        let timeout = new.timeout.map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
        let deadline_at = timeout.map(|timeout| now.plus_millis(timeout));
        let mut records: Vec<Draft> = vec![
            RunWaiting {
                run_id,
                wait_id,
                wait_kind: new.kind,
                resume_token_id,
                deadline_at,
                tool_call_id: None,
                request: Some(new.request.clone()),
                by: Some(new.by.clone().into()),
                idempotency_key: new.key.as_ref().map(|key| key.as_stored().into()),
            }
            .into(),
            TokenMinted {
                resume_token_id,
                wait_id,
                // The wait's own secret is shown to nobody: only its hash ever exists.
                secret_hash: sha256_hex(&[random()?.to_le_bytes(), random()?.to_le_bytes()].concat()).into(),
                scope: TokenScope { session_id: self.session, run_id, wait_id },
                expires_at: deadline_at,
                by: None,
            }
            .into(),
        ];
        keep_large(&core.store, &mut records)?;
        crash_point("open_wait.before");
        core.append(self.session, records)?;
        crash_point("open_wait.after");
        self.note_deadlines(core)?;
        Ok(wait_id)
    }

    /// Records the answer to a wait that a program opened.
    pub(super) fn answer_outside(
        &mut self,
        core: &Core,
        current: &Current,
        run_id: RunId,
        wait: &Wait,
        asked: &Answering,
    ) -> Result<AnswerTaken, ServiceError> {
        let wait_id = wait.wait_id;
        let consumed = asked.token.unwrap_or(wait.resume_token_id);
        let by = || Some(asked.by.clone().into());
        let answer = Some(asked.answer.as_given());
        let mut records: Vec<Draft> = vec![
            TokenConsumed {
                resume_token_id: consumed,
                wait_id,
                answer_hash: Some(asked.answer.hash().into()),
                by: by(),
            }
            .into(),
            RunResumed { run_id, wait_id, answer, by: by(), how: ResumeHow::Answered, granted: None }.into(),
        ];
        records.extend(revocations(&current.tokens, wait_id, Some(consumed), "answered"));
        keep_large(&core.store, &mut records)?;
        crash_point("answer.before_record");
        core.append(self.session, records)?;
        self.note_deadlines(core)?;
        Ok(AnswerTaken { run_id, resume_token_id: Some(consumed) })
    }

    /// Records what has run out: tokens, and waits that programs opened. Done again, it does nothing.
    pub(super) fn expire(&mut self, core: &Core) -> Result<(), ServiceError> {
        let current = core.store.open_session(self.session)?;
        let records = expirations(&current.state, &current.tokens, core.time());
        if !records.is_empty() && current.damage.is_none() && !current.state.deleted {
            crash_point("expire.before");
            core.append(self.session, records)?;
            crash_point("expire.after");
        }
        self.note_deadlines(core)
    }

    pub(super) fn expire_or_warn(&mut self, core: &Core) {
        if let Err(error) = self.expire(core) {
            tracing::warn!(session = %self.session, "what has expired is not recorded: {}", error.message);
        }
    }
}

/// Tells whether something has run out of which no record says so yet.
pub(crate) fn is_expired(state: &SessionState, tokens: &TokenIndex, now: Now) -> bool {
    !expirations(state, tokens, now).is_empty()
}

/// Returns the records of what has run out.
///
/// The own token of a wait of the agent's is left alone while the wait is open: it ends with the wait, which is cancelled
/// then. What a program waits for ends as `timeout`, and its run goes on: no agent is kept by it.
fn expirations(state: &SessionState, tokens: &TokenIndex, now: Now) -> Vec<Draft> {
    let moment = Moment { now, newest: state.updated_at };
    let waits = state.open_run().map(|run| run.waits.as_slice()).unwrap_or_default();
    let own = |id: TokenId| waits.iter().any(|wait| !wait.kind.is_outside() && wait.resume_token_id == id);
    let is_over = |wait: &Wait| {
        wait.kind.is_outside() && wait.deadline_at.is_some_and(|deadline| moment.is_past(deadline))
    };
    let mut records: Vec<Draft> = Vec::new();
    let mut ended: Vec<TokenId> = Vec::new();
    for (resume_token_id, token) in tokens.expired(moment).filter(|(id, _)| !own(*id)) {
        ended.push(resume_token_id);
        records.push(TokenExpired { resume_token_id, wait_id: Some(token.scope.wait_id) }.into());
    }
    for (run, wait) in
        state.open_run().into_iter().flat_map(|run| run.waits.iter().map(move |wait| (run, wait)))
    {
        if !is_over(wait) {
            continue;
        }
        let left = revocations(tokens, wait.wait_id, None, "timeout");
        let is_left = |draft: &Draft| match &draft.event {
            Event::TokenRevoked(revoked) => !ended.contains(&revoked.resume_token_id),
            _ => true,
        };
        records.extend(left.into_iter().filter(is_left));
        let (by, how, wait_id) = (Some("deadline".into()), ResumeHow::Timeout, wait.wait_id);
        records.push(RunResumed { run_id: run.run_id, wait_id, answer: None, by, how, granted: None }.into());
    }
    records
}

#[cfg(test)]
mod tests;
