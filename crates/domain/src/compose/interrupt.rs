//! A run ends otherwise than by its agent's own word: interrupted, failed, or cancelled as it was to be.

use crate::event::{
    CancelReason, Event, InterruptReason, RunCancelled, RunFailed, RunInterrupted, StatusDerived,
    UncertainTool,
};
use crate::id::RunId;
use crate::line::Draft;
use crate::projector::status_after;
use crate::session::{End, Run};
use crate::token::TokenIndex;

use super::wait::{revocations, withdraw_with_run};

/// What ends a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It cannot be begun.
    Failed {
        /// What went wrong.
        error: String,
    },
    /// It was cut.
    Interrupted {
        /// By what.
        reason: InterruptReason,
        /// Tool calls that may or may not have had their effect.
        uncertain: Vec<UncertainTool>,
        /// Nothing is known of the whole turn.
        uncertain_turn: bool,
        /// For people.
        detail: Option<String>,
    },
    /// It was to be cancelled, and no agent has it.
    Cancelled,
}

/// Composes the end of a run whose agent is gone, or does not work: what programs wait for is withdrawn, then the run ends,
/// then the tokens of what its agent asked are revoked. After an interruption those waits are void, not over.
///
/// One that was to be cancelled is, whatever ends it (I13); one whose wait timed out is interrupted by that.
pub fn end_run(run: &Run, tokens: &TokenIndex, ending: Ending) -> Vec<Draft> {
    let run_id = run.run_id;
    let mut records = withdraw_with_run(run, tokens);
    match (run.cancel, ending) {
        (Some(why), _) if why != CancelReason::WaitTimeout => records.push(cancelled(run_id, why).into()),
        (_, Ending::Failed { error }) => records.push(RunFailed { run_id, error: error.into() }.into()),
        (timeout, Ending::Interrupted { reason, uncertain, uncertain_turn, detail }) => {
            let reason = timeout.map_or(reason, |_| InterruptReason::WaitTimeout);
            let detail = detail.map(Into::into);
            records.push(RunInterrupted { run_id, reason, uncertain, uncertain_turn, detail }.into());
            records.push(derived(run, reason).into());
        }
        (Some(_), Ending::Cancelled) => {
            records.push(timed_out(run_id).into());
            records.push(derived(run, InterruptReason::WaitTimeout).into());
        }
        (None, Ending::Cancelled) => records.push(cancelled(run_id, CancelReason::Unknown).into()),
    }
    for wait in run.waits.iter().filter(|wait| !wait.kind.is_outside()) {
        records.extend(revocations(tokens, wait.wait_id, None, "interrupted"));
    }
    records
}

/// Composes the end of a turn by its agent's own word, `end`: what programs wait for is withdrawn before it. One whose wait
/// timed out is interrupted, whatever the agent calls it.
pub fn end_turn(run: &Run, tokens: &TokenIndex, end: Event<'static>) -> Vec<Draft> {
    let mut records = withdraw_with_run(run, tokens);
    records.push(match run.cancel {
        Some(CancelReason::WaitTimeout) => timed_out(run.run_id).into(),
        _ => end.into(),
    });
    records
}

/// Returns the record of a run that is interrupted because nobody answered in time.
pub(super) fn timed_out(run_id: RunId) -> RunInterrupted<'static> {
    let reason = InterruptReason::WaitTimeout;
    RunInterrupted { run_id, reason, uncertain: Vec::new(), uncertain_turn: false, detail: None }
}

/// Returns the end of a run that was to be cancelled.
fn cancelled(run_id: RunId, why: CancelReason) -> RunCancelled<'static> {
    let by = if why == CancelReason::User { "user" } else { "daemon" };
    RunCancelled { run_id, by: Some(by.into()) }
}

/// Returns the record that says what an interruption makes of a session's status; for those who only read the log.
fn derived(run: &Run, reason: InterruptReason) -> StatusDerived<'static> {
    let status = status_after(End::Interrupted { reason, waiting: run.has_asked() });
    StatusDerived { status: status.as_str().into() }
}
