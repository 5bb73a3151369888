//! Ends of a run that its agent does not tell itself, and what ends with them.

use super::*;
use crate::compose::interrupt::{Ending, end_run, end_turn};
use crate::event::{InterruptReason, UncertainTool};

/// What ends [`OUTSIDE`] with its run, with all its tokens.
const WITHDRAWN: &str = "token.revoked wait=3 reason=run_ended; token.revoked wait=3 token=30 reason=run_ended; \
    run.resumed wait=3 how=withdrawn by=daemon";
/// What ends every token of [`ASKED`] and [`ASKED_AGAIN`]; the waits are void.
const VOID: &str = "token.revoked reason=interrupted; token.revoked wait=2 reason=interrupted; \
    token.revoked wait=2 token=20 reason=interrupted";
/// What the projector makes of it.
const STARTUP: &str = "status.derived status=interrupted_startup";
const WAITING: &str = "status.derived status=interrupted_waiting";

fn ended(state: &SessionState, tokens: &TokenIndex, ending: Ending) -> Vec<Draft> {
    end_run(state.open_run().expect("open"), tokens, ending)
}

fn cut(reason: InterruptReason) -> Ending {
    let uncertain =
        UncertainTool { tool_call_id: "tool_1".into(), title: "t".into(), kind: None, input: None };
    let detail = Some("why".into());
    Ending::Interrupted { reason, uncertain: vec![uncertain], uncertain_turn: true, detail }
}

fn interrupted(reason: &str) -> String {
    format!(
        r#"run.interrupted reason={reason} uncertain=[{{"tool_call_id":"tool_1","title":"t","kind":null}}] uncertain_turn=true detail=why"#
    )
}

#[test]
fn an_interruption_withdraws_what_programs_wait_for_and_voids_what_the_agent_asked() {
    let work = &[STARTED, AGENT, PROMPTED][..];
    let interrupted = interrupted("holder_lost");
    for (more, expected) in [
        (&[][..], format!("{interrupted}; {STARTUP}")),
        (&[OUTSIDE], format!("{WITHDRAWN}; {interrupted}; {STARTUP}")),
        (&[ASKED, ASKED_AGAIN], format!("{interrupted}; {WAITING}; {VOID}")),
        (&[ASKED, OUTSIDE, ASKED_AGAIN], format!("{WITHDRAWN}; {interrupted}; {WAITING}; {VOID}")),
        // A token that has ended is not ended again.
        (&[ASKED, "token.expired"], format!("{interrupted}; {WAITING}")),
    ] {
        let appends = [work, more].concat();
        check(&appends, &expected, |state, tokens| ended(state, tokens, cut(InterruptReason::HolderLost)));
    }
}

// I13: one that was to be cancelled is, whatever ends it, and no token outlives it.
#[test]
fn a_run_that_was_to_be_cancelled_is() {
    let failed = || Ending::Failed { error: "no agent".into() };
    for (why, by) in [("user", "user"), ("stop_all", "daemon"), ("new_message", "daemon")] {
        let cancel = format!("run.cancel_requested why={why}");
        // An agent may ask once more after it was cancelled.
        let appends = &[STARTED, AGENT, PROMPTED, &cancel, ASKED, ASKED_AGAIN];
        let expected = format!("run.cancelled by={by}; {VOID}");
        for ending in [cut(InterruptReason::AgentExit), failed(), Ending::Cancelled] {
            check(appends, &expected, |state, tokens| ended(state, tokens, ending));
        }
    }
    let timed_out = "run.cancel_requested why=wait_timeout";
    let expected = format!("{}; {WAITING}", interrupted("wait_timeout"));
    check(&[STARTED, AGENT, PROMPTED, timed_out], &expected, |state, tokens| {
        ended(state, tokens, cut(InterruptReason::AgentExit))
    });
    let expected = format!("run.interrupted reason=wait_timeout; {WAITING}");
    check(&[STARTED, timed_out], &expected, |state, tokens| ended(state, tokens, Ending::Cancelled));
}

#[test]
fn a_run_that_cannot_be_begun_fails_with_all_that_waited_on_it() {
    let failed = || Ending::Failed { error: "gone".into() };
    check(&[STARTED], "run.failed error=gone", |state, tokens| ended(state, tokens, failed()));
    check(&[STARTED, OUTSIDE], &format!("{WITHDRAWN}; run.failed error=gone"), |state, tokens| {
        ended(state, tokens, failed())
    });
    check(&[STARTED, ASKED, ASKED_AGAIN], &format!("run.failed error=gone; {VOID}"), |state, tokens| {
        ended(state, tokens, failed())
    });
}

#[test]
fn a_turn_ends_as_its_agent_says_unless_a_wait_of_it_timed_out() {
    let work = &[STARTED, AGENT, PROMPTED][..];
    let completed = "run.completed stop_reason=end_turn";
    for (more, expected) in [
        (&[][..], completed.to_owned()),
        (&[OUTSIDE], format!("{WITHDRAWN}; {completed}")),
        (&["run.cancel_requested"], completed.to_owned()),
        (&["run.cancel_requested why=wait_timeout"], "run.interrupted reason=wait_timeout".to_owned()),
    ] {
        check(&[work, more].concat(), &expected, |state, tokens| {
            end_turn(state.open_run().expect("open"), tokens, draft(completed).event)
        });
    }
}
