//! Waits that programs open on a run, and tokens whose time runs out: recorded by the worker of the session, so that nobody
//! answers, cancels and expires the same thing at once. No agent is told any of it.

use std::sync::Arc;

use rekindle_domain::compose::answer::{Answer, answer};
use rekindle_domain::compose::expire::expire;
use rekindle_domain::compose::wait::{NewWait, open};
use rekindle_domain::id::{RunId, WaitId};
use rekindle_domain::session::{SessionState, Wait};
use rekindle_domain::time::Now;
use rekindle_domain::token::TokenIndex;
use rekindle_store::commit::Current;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::AnswerTaken;

use super::{Answering, Opening, Worker, Workers};
use crate::drive::live::keep_large;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::wait_names;
use crate::test_knobs::crash_point;

/// Most waits that may be open in a run at once: a bound for programs that forget theirs.
const MOST_OPEN: usize = 64;

impl Worker {
    /// Opens a wait on the run that goes on.
    pub(super) fn open_wait(&mut self, workers: &Arc<Workers>, new: &Opening) -> Result<WaitId> {
        let state = workers.records.store.open_session(self.session)?.state;
        if let Some(key) = &new.key {
            for known in &state.wait_keys {
                if key.is(&known.key)? {
                    return Ok(known.wait_id);
                }
            }
        }
        let run =
            state.open_run().filter(|run| run.cancel.is_none()).ok_or_else(ServiceError::nothing_running)?;
        if run.waits.len() >= MOST_OPEN {
            let message = format!("this run already has {MOST_OPEN} open waits");
            return Err(ServiceError::new(Code::QueueFull, message).hint(Hint::AnswerWaits));
        }
        let (run_id, now) = (run.run_id, workers.records.time().steady);
        let (wait_id, resume_token_id, secret) = wait_names(now)?;
        let wait = NewWait {
            run_id,
            wait_id,
            resume_token_id,
            secret,
            kind: new.kind,
            tool_call_id: None,
            request: new.request.clone(),
            by: Some(new.by.clone()),
            idempotency_key: new.key.as_ref().map(Key::as_stored),
            now,
            timeout: new.timeout,
        };
        let mut records = open(self.session, wait);
        keep_large(&*workers.records.store, &mut records)?;
        crash_point("open_wait.before");
        workers.records.append(self.session, records)?;
        crash_point("open_wait.after");
        self.update_deadline(workers)?;
        Ok(wait_id)
    }

    /// Records the answer to a wait that a program opened.
    pub(super) fn answer_outside(
        &mut self,
        workers: &Workers,
        current: &Current,
        run_id: RunId,
        wait: &Wait,
        asked: &Answering,
    ) -> Result<AnswerTaken> {
        let Answering { by, token, .. } = asked;
        let (hash, as_given) = (asked.answer.hash(), Some(asked.answer.as_given()));
        let given = Answer { by, token: *token, hash, answer: as_given, granted: None };
        let consumed = given.consumes(wait);
        let mut records = answer(run_id, wait, &current.tokens, given, None);
        keep_large(&*workers.records.store, &mut records)?;
        crash_point("answer.before_record");
        workers.records.append(self.session, records)?;
        self.update_deadline(workers)?;
        Ok(AnswerTaken { run_id, resume_token_id: Some(consumed) })
    }

    /// Records what has run out: tokens, and waits that programs opened. Done again, it does nothing.
    pub(super) fn expire(&mut self, workers: &Workers) -> Result<()> {
        let current = workers.records.store.open_session(self.session)?;
        let records = expire(&current.state, &current.tokens, workers.records.time());
        if !records.is_empty() && current.damage.is_none() && !current.state.deleted {
            crash_point("expire.before");
            workers.records.append(self.session, records)?;
            crash_point("expire.after");
        }
        self.update_deadline(workers)
    }

    pub(super) fn expire_or_warn(&mut self, workers: &Workers) {
        if let Err(error) = self.expire(workers) {
            tracing::warn!("expired waits cannot be recorded: {}", error.text());
        }
    }
}

/// Tells whether something has run out of which no record says so yet.
pub(crate) fn is_expired(state: &SessionState, tokens: &TokenIndex, now: Now) -> bool {
    !expire(state, tokens, now).is_empty()
}
