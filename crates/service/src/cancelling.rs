//! What a cancel records where there is no agent to speak with.

use rekindle_domain::event::{CancelReason, ResumeHow, RunCancelRequested, RunCancelled, RunResumed};
use rekindle_domain::id::MessageId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::{End, SessionState};
use rekindle_domain::token::TokenIndex;

use crate::live::revocations;

/// Tells whether there is something to cancel: a run, a continuation that is owed, a message in the queue.
pub(crate) fn has_something_to_cancel(state: &SessionState) -> bool {
    let pending = state.run.as_ref().is_some_and(|run| {
        run.end.is_none() || matches!(run.end, Some(End::Interrupted { .. })) && run.cancel.is_none()
    });
    pending || !state.queue.is_empty()
}

/// Returns the records of a cancel: nothing of the run, its waits and the messages dropped from the queue goes on. None
/// if there is nothing to cancel.
pub(crate) fn cancel_records(
    state: &SessionState,
    tokens: &TokenIndex,
    why: CancelReason,
    by: &str,
    dropped: Vec<MessageId>,
) -> Vec<Draft> {
    let mut records: Vec<Draft> = Vec::new();
    let requested = state.run.as_ref().filter(|run| run.cancel.is_none());
    let open = state.open_run().filter(|run| run.cancel.is_none());
    let who = || Some(by.to_owned().into());
    if requested.is_some() || !dropped.is_empty() {
        let run_id = requested.map(|run| run.run_id);
        records.push(RunCancelRequested { run_id, by: who(), why, dropped }.into());
    }
    // Without an agent to speak with nobody else says that it ended; one that may live is ended when it is met.
    if let Some(run) = open {
        for wait in &run.waits {
            let (run_id, wait_id) = (run.run_id, wait.wait_id);
            records.extend(revocations(tokens, wait_id, None, "cancelled"));
            let how = ResumeHow::Cancelled;
            records.push(RunResumed { run_id, wait_id, answer: None, by: who(), how }.into());
        }
        if !run.prompted && why != CancelReason::WaitTimeout {
            records.push(RunCancelled { run_id: run.run_id, by: who() }.into());
        }
    }
    records
}
