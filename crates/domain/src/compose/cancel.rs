//! A run is cancelled: nothing of it, its waits and the messages dropped from the queue goes on.

use crate::event::{CancelReason, InputQueued, ResumeHow, RunCancelRequested, RunCancelled};
use crate::id::MessageId;
use crate::line::Draft;
use crate::session::{End, Run, SessionState};
use crate::token::TokenIndex;

use super::{interrupt, wait};

/// A cancel as it is asked for.
#[derive(Debug, Clone)]
pub struct Cancel<'a> {
    /// Why.
    pub why: CancelReason,
    /// Who asks.
    pub by: &'a str,
    /// Messages that are taken out of the queue.
    pub dropped: Vec<MessageId>,
    /// Whom it is told.
    pub agent: Agent,
    /// What follows it in the same append: the message that comes instead of an answer.
    pub behind: Vec<Draft>,
}

/// Whom a cancel is told.
#[derive(Debug, Clone)]
pub enum Agent {
    /// Nobody: there is no agent that could be met. One that may live is told when it is met.
    Absent,
    /// The agent that has the run.
    Present {
        /// It was to be given the run's prompt, and is not any more.
        unsaid: bool,
        /// It is a command, which works on its prompt from its start: only its end ends the run.
        is_command: bool,
        /// What it is told: `cancelled` in answer to all that it asked, and the cancel.
        told: Vec<InputQueued<'static>>,
    },
}

/// Tells whether there is something to cancel: a run, a continuation that is owed, a message in the queue.
pub fn is_possible(state: &SessionState) -> bool {
    pending_run(state).is_some_and(|run| run.end.is_none() || run.cancel.is_none()) || !state.queue.is_empty()
}

/// Returns the run that a cancel is about: one that goes on, or may have to be continued. Without one only what is queued goes.
pub fn pending_run(state: &SessionState) -> Option<&Run> {
    state.run.as_ref().filter(|run| matches!(run.end, None | Some(End::Interrupted { .. })))
}

/// Tells whether a run is not cancelled yet, or only for a reason that a person's word goes beyond (I13).
fn is_news(run: &Run, why: CancelReason) -> bool {
    let by_a_person = |why| matches!(why, CancelReason::User | CancelReason::StopAll);
    run.cancel.is_none_or(|before| by_a_person(why) && !by_a_person(before))
}

/// Composes a cancel: `run.cancel_requested`, for every wait its `token.revoked`… + `run.resumed`, the run's end if its
/// prompt was given to nobody, `input.queued`… for the agent, and what follows. Empty if there is nothing to record.
pub fn cancel(state: &SessionState, tokens: &TokenIndex, asked: Cancel<'_>) -> Vec<Draft> {
    let Cancel { why, by, dropped, agent, behind } = asked;
    let mut records: Vec<Draft> = Vec::new();
    let pending = pending_run(state);
    if pending.is_some_and(|run| is_news(run, why)) || !dropped.is_empty() {
        // One that is open has to be named, whoever cancelled it before.
        let run_id = pending.map(|run| run.run_id);
        records.push(RunCancelRequested { run_id, by: Some(by.to_owned().into()), why, dropped }.into());
    }
    if let Some(run) = state.open_run().filter(|run| run.cancel.is_none()) {
        let (how, reason) = match why {
            CancelReason::WaitTimeout => (ResumeHow::Timeout, "timeout"),
            _ => (ResumeHow::Cancelled, "cancelled"),
        };
        for wait in &run.waits {
            records.extend(wait::revocations(tokens, wait.wait_id, None, reason));
            records.push(wait::ended(run.run_id, wait.wait_id, how, by));
        }
        let unprompted = match &agent {
            Agent::Absent => !run.prompted,
            // Whatever the log says was queued may have been for an agent before this one.
            Agent::Present { unsaid, is_command, .. } => !is_command && (*unsaid || !run.prompted),
        };
        // No agent will say that it ended.
        if unprompted {
            records.push(match why {
                CancelReason::WaitTimeout => interrupt::timed_out(run.run_id).into(),
                _ => RunCancelled { run_id: run.run_id, by: Some(by.to_owned().into()) }.into(),
            });
        }
    }
    if let Agent::Present { told, .. } = agent {
        records.extend(told.into_iter().map(Draft::from));
    }
    records.extend(behind);
    records
}
