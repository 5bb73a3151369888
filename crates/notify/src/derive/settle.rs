//! Settling: some notices are told only if they are still so a moment later. A question that is answered at once, or a run that goes on
//! by itself, is nobody's business elsewhere.

use rekindle_domain::projector::{HolderProof, WaitState, wait_state};
use rekindle_domain::session::SessionState;
use rekindle_domain::task::TasksState;

use super::is_queue_empty;
use crate::notice::{Notice, NoticeKind};

/// How things stand where a notice comes from, as far as that is known.
pub struct Standing<'a> {
    /// The session, and what is known of its holder; none if it is gone.
    pub session: Option<(&'a SessionState, HolderProof)>,
    /// The tasks that have not ended; none if nobody can tell.
    pub tasks: Option<&'a TasksState>,
}

/// Tells whether a kind of notice can cease to be so.
pub fn needs_settling(kind: NoticeKind) -> bool {
    match kind {
        NoticeKind::Waiting | NoticeKind::Interrupted | NoticeKind::Stalled | NoticeKind::QueueEmpty => true,
        NoticeKind::Progress
        | NoticeKind::Completed
        | NoticeKind::Failed
        | NoticeKind::Resumed
        | NoticeKind::Budget => false,
    }
}

/// Tells whether what a notice says is still so. What has happened stays so.
pub fn still_holds(notice: &Notice, now: &Standing<'_>) -> bool {
    let session = now.session.filter(|(state, _)| !state.deleted);
    match notice.kind {
        NoticeKind::Waiting => match &notice.question {
            Some(question) => session.is_some_and(|(state, holder)| {
                let run = state.run.as_ref();
                let wait = run.and_then(|run| Some((run, run.wait(question.wait_id)?)));
                wait.is_some_and(|(run, wait)| wait_state(run, wait, holder) == WaitState::Open)
            }),
            // A task that needs a person for another reason. If its run was cut, that was told.
            None => {
                let task = notice.task_id.and_then(|id| now.tasks?.get(id));
                let is_cut = session.is_some_and(|(state, _)| state.recovery.interruption.is_some());
                task.is_some_and(|task| task.reason == notice.reason) && !is_cut
            }
        },
        NoticeKind::Interrupted => session.is_some_and(|(state, _)| {
            let cut = state.recovery.interruption.as_ref().map(|interruption| interruption.run_id);
            cut.is_some() && cut == notice.run_id
        }),
        // Whatever was heard since, the clock would tell anew.
        NoticeKind::Stalled => session.is_some_and(|(state, _)| {
            let heard = state.agent.as_ref().and_then(|agent| agent.last_output_at);
            let run = state.open_run().filter(|run| Some(run.run_id) == notice.run_id);
            run.is_some_and(|run| run.waits.is_empty()) && heard.is_none_or(|heard| heard < notice.at)
        }),
        NoticeKind::QueueEmpty => now.tasks.is_none_or(is_queue_empty),
        NoticeKind::Progress
        | NoticeKind::Completed
        | NoticeKind::Failed
        | NoticeKind::Resumed
        | NoticeKind::Budget => true,
    }
}
