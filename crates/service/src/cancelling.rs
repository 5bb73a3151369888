//! What a cancel records where there is no agent to speak with.

use rekindle_domain::event::{CancelReason, ResumeHow, RunCancelRequested, RunCancelled, RunResumed};
use rekindle_domain::id::MessageId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::{End, Run, SessionState};
use rekindle_domain::token::TokenIndex;

use crate::live::revocations;

/// Tells whether there is something to cancel: a run, a continuation that is owed, a message in the queue.
pub(crate) fn has_something_to_cancel(state: &SessionState) -> bool {
    let pending = state.run.as_ref().filter(|run| is_pending(run));
    pending.is_some_and(|run| run.end.is_none() || run.cancel.is_none()) || !state.queue.is_empty()
}

/// Tells whether a run goes on, or may have to be continued.
fn is_pending(run: &Run) -> bool {
    matches!(run.end, None | Some(End::Interrupted { .. }))
}

/// Tells whether a run is not cancelled yet, or only for a reason that a person's word goes beyond (I13).
pub(crate) fn is_news(run: &Run, why: CancelReason) -> bool {
    let by_a_person = |why| matches!(why, CancelReason::User | CancelReason::StopAll);
    run.cancel.is_none_or(|before| by_a_person(why) && !by_a_person(before))
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
    let pending = state.run.as_ref().filter(|run| is_pending(run));
    let open = state.open_run().filter(|run| run.cancel.is_none());
    let who = || Some(by.to_owned().into());
    if pending.is_some_and(|run| is_news(run, why)) || !dropped.is_empty() {
        // One that is open has to be named, whoever cancelled it before.
        let run_id = pending.map(|run| run.run_id);
        records.push(RunCancelRequested { run_id, by: who(), why, dropped }.into());
    }
    // Without an agent to speak with nobody else says that it ended; one that may live is ended when it is met.
    if let Some(run) = open {
        for wait in &run.waits {
            let (run_id, wait_id) = (run.run_id, wait.wait_id);
            records.extend(revocations(tokens, wait_id, None, "cancelled"));
            let how = ResumeHow::Cancelled;
            records.push(RunResumed { run_id, wait_id, answer: None, by: who(), how, granted: None }.into());
        }
        if !run.prompted && why != CancelReason::WaitTimeout {
            records.push(RunCancelled { run_id: run.run_id, by: who() }.into());
        }
    }
    records
}
