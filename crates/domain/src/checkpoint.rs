//! Checkpoints that are due: which of them a session lacks, from its log alone, and whether somebody was there in time.

use std::time::Duration;

use crate::event::CheckpointHow;
use crate::id::{BootId, RunId};
use crate::session::{OwedEnd, Run, SessionState};
use crate::time::Timestamp;

/// How long after its end a run's directory still counts as what the run left: longer, and whoever else works there may have
/// changed it. Some seconds go by when many runs end together.
const ATTENDED_WITHIN: Duration = Duration::from_secs(10);

/// Checkpoints that a session lacks. If both are due, one look at the directory tells both: no agent worked in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// The run that has ended and lacks the one at its end.
    pub end: Option<OwedEnd>,
    /// The run whose prompt waits for the one at its start.
    pub start: Option<RunId>,
}

impl Due {
    /// Tells whether there is none.
    pub fn is_nothing(&self) -> bool {
        *self == Due::default()
    }
}

/// Returns the checkpoints that a session lacks. While an agent works on a prompt there is none to be taken.
pub fn due(state: &SessionState) -> Due {
    if state.deleted {
        return Due::default();
    }
    match state.open_run() {
        Some(run) if run.prompted => Due::default(),
        Some(run) => Due { end: state.owed_end, start: is_start_due(run).then_some(run.run_id) },
        None => {
            let latest = state.run.as_ref().and_then(Run::owed_end);
            Due { end: latest.or(state.owed_end), start: None }
        }
    }
}

/// Tells whether a run's prompt waits for the checkpoint at its start.
pub fn is_start_due(run: &Run) -> bool {
    run.end.is_none() && !run.prompted && run.cancel.is_none() && run.checkpoints.start.is_none()
}

/// Tells how the checkpoint at a run's end is taken by a daemon that looks at the directory from `begun` on.
pub fn how_at_end(owed: &OwedEnd, boot_id: BootId, begun: Timestamp) -> CheckpointHow {
    let waited = Duration::from_millis(begun.millis_since(owed.ended_at));
    if owed.boot_id == boot_id && waited <= ATTENDED_WITHIN {
        CheckpointHow::Live
    } else {
        CheckpointHow::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::log::Log;
    use crate::session::tests::script::at;

    const STARTED: &str = "session.created; message.user; run.started msg=1";
    const START: &str = "run.checkpoint at=start how=live";
    const END: &str = "run.checkpoint at=end how=live";
    const PROMPTED: &str = "agent.launching; agent.started; input.queued input_seq=1";
    const NEXT: &str = "run.started run=2";

    /// Checks which checkpoints are due: the run of the one at an end, and of the one at a start.
    fn check(appends: &[&str], end: Option<&str>, start: Option<&str>) {
        let due = due(&Log::of(appends).replay.state);
        let found = (due.end.map(|owed| owed.run_id.to_string()), due.start.map(|run| run.to_string()));
        assert_eq!(found, (end.map(Into::into), start.map(Into::into)), "{appends:?}");
    }

    #[test]
    fn a_start_is_due_until_it_is_recorded_or_the_prompt_is_given() {
        check(&["session.created"], None, None);
        check(&[STARTED], None, Some("run_1"));
        check(&[STARTED, "agent.launching"], None, Some("run_1"));
        check(&[STARTED, START], None, None);
        check(&[STARTED, PROMPTED], None, None);
        check(&[STARTED, "run.cancel_requested"], None, None);
        check(&[STARTED, "run.cancelled"], None, None);
        check(&[STARTED, "session.deleted"], None, None);
    }

    #[test]
    fn an_end_is_due_once_a_run_with_a_start_has_ended() {
        for ended in ["run.completed", "run.failed", "run.cancelled", "run.interrupted"] {
            check(&[STARTED, START, PROMPTED, ended], Some("run_1"), None);
            check(&[STARTED, START, ended], Some("run_1"), None);
            check(&[STARTED, START, PROMPTED, ended, END], None, None);
            check(&[STARTED, PROMPTED, ended], None, None);
            check(&[STARTED, START, PROMPTED, ended, "session.closed"], Some("run_1"), None);
        }
        check(&[STARTED, START, PROMPTED], None, None);
    }

    #[test]
    fn an_end_that_nobody_recorded_is_owed_until_the_next_agent_works() {
        let ended = [STARTED, START, PROMPTED, "run.completed"];
        let then = |more: &[&'static str]| [&ended[..], more].concat();
        check(&then(&[NEXT]), Some("run_1"), Some("run_2"));
        check(&then(&[NEXT, "run.checkpoint at=end; run.checkpoint run=2 at=start"]), None, None);
        check(&then(&[NEXT, "run.cancelled run=2"]), Some("run_1"), None);
        check(&then(&[NEXT, "run.cancelled run=2", "run.started run=3"]), Some("run_1"), Some("run_3"));
        // What the next agent does is not the work of the first.
        check(&then(&[NEXT, "input.queued input_seq=2", "run.completed run=2"]), None, None);
    }

    #[test]
    fn an_end_is_late_when_nobody_was_there() {
        let state = Log::of(&[STARTED, START, PROMPTED, "run.completed"]).replay.state;
        let owed = due(&state).end.expect("owed");
        let (boot, other): (BootId, BootId) =
            ("boot_a".parse().expect("an id"), "boot_b".parse().expect("an id"));
        let ended = owed.ended_at;
        assert_eq!(ended, at(8));
        assert_eq!(how_at_end(&owed, boot, ended), CheckpointHow::Live);
        assert_eq!(how_at_end(&owed, boot, at(18)), CheckpointHow::Live);
        assert_eq!(how_at_end(&owed, boot, at(19)), CheckpointHow::Late);
        assert_eq!(how_at_end(&owed, other, ended), CheckpointHow::Late);
    }
}
