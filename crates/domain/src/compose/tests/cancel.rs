//! Cancels: with an agent and without, of one run, of the queue, for every reason.

use super::*;
use crate::compose::cancel::{Agent, Cancel, cancel, is_possible};
use crate::event::CancelReason;

use CancelReason::{NewMessage, StopAll, User, WaitTimeout};

const QUEUED: &str = "message.user msg=2 queued=true";
/// What ends the waits of [`ASKED`], [`ASKED_AGAIN`] and [`OUTSIDE`]: every token of every one, each before its wait.
const ALL_WAITS: &str = "token.revoked reason=cancelled; run.resumed how=cancelled by=ada; \
    token.revoked wait=2 reason=cancelled; token.revoked wait=2 token=20 reason=cancelled; \
    run.resumed wait=2 how=cancelled by=ada; \
    token.revoked wait=3 reason=cancelled; token.revoked wait=3 token=30 reason=cancelled; \
    run.resumed wait=3 how=cancelled by=ada";

/// Composes a cancel that drops what waits, unless a message is its reason.
fn asked(state: &SessionState, tokens: &TokenIndex, why: CancelReason, agent: Agent) -> Vec<Draft> {
    let dropped = if why == NewMessage { Vec::new() } else { state.queue.clone() };
    cancel(state, tokens, Cancel { why, by: "ada", dropped, agent, behind: Vec::new() })
}

fn present(unsaid: bool, is_command: bool) -> Agent {
    let told = ["input.queued input_seq=2 what=answer", "input.queued input_seq=3 what=cancel"].map(input);
    Agent::Present { unsaid, is_command, told: told.into() }
}

// I13: a cancel is recorded before anything else happens, and whole.
#[test]
fn a_cancel_ends_every_wait_with_every_token_whoever_is_told() {
    let waiting = &[STARTED, AGENT, PROMPTED, ASKED, ASKED_AGAIN, OUTSIDE];
    let requested = "run.cancel_requested by=ada";
    check(waiting, &format!("{requested}; {ALL_WAITS}"), |state, tokens| {
        asked(state, tokens, User, Agent::Absent)
    });
    let told = "input.queued input_seq=2 what=answer; input.queued input_seq=3 what=cancel";
    check(waiting, &format!("{requested}; {ALL_WAITS}; {told}"), |state, tokens| {
        asked(state, tokens, User, present(false, false))
    });
}

// I13: nobody says a prompt that was cancelled before anyone had it, and its run ends at once.
#[test]
fn a_run_whose_prompt_nobody_has_ends_with_its_cancel() {
    let told = "input.queued input_seq=2 what=answer; input.queued input_seq=3 what=cancel";
    let ended = "run.cancel_requested by=ada; run.cancelled by=ada";
    check(&[STARTED], ended, |state, tokens| asked(state, tokens, User, Agent::Absent));
    check(&[STARTED, AGENT], ended, |state, tokens| asked(state, tokens, User, Agent::Absent));
    // A cancel may come before the message of which the log tells already: nothing was to be said yet.
    for unsaid in [true, false] {
        check(&[STARTED, AGENT], &format!("{ended}; {told}"), |state, tokens| {
            asked(state, tokens, User, present(unsaid, false))
        });
    }
    // An agent before this one was to be given it, and was not.
    check(&[STARTED, AGENT, PROMPTED], &format!("{ended}; {told}"), |state, tokens| {
        asked(state, tokens, User, present(true, false))
    });
    check(&[STARTED, AGENT, PROMPTED], "run.cancel_requested by=ada", |state, tokens| {
        asked(state, tokens, User, Agent::Absent)
    });
    // A command is at work from its start.
    for unsaid in [true, false] {
        check(&[STARTED, AGENT], &format!("run.cancel_requested by=ada; {told}"), |state, tokens| {
            asked(state, tokens, User, present(unsaid, true))
        });
    }
    // The waits end before the run does.
    let waits = "token.revoked wait=3 reason=cancelled; token.revoked wait=3 token=30 reason=cancelled; \
        run.resumed wait=3 how=cancelled by=ada";
    let expected = format!("run.cancel_requested by=ada; {waits}; run.cancelled by=ada");
    check(&[STARTED, OUTSIDE], &expected, |state, tokens| asked(state, tokens, User, Agent::Absent));
}

#[test]
fn a_wait_that_timed_out_is_said_to_have_and_its_run_is_interrupted() {
    let expected = "run.cancel_requested why=wait_timeout by=ada; token.revoked reason=timeout; \
        run.resumed how=timeout by=ada";
    for agent in [Agent::Absent, Agent::Present { unsaid: false, is_command: false, told: Vec::new() }] {
        check(&[STARTED, AGENT, PROMPTED, ASKED], expected, |state, tokens| {
            asked(state, tokens, WaitTimeout, agent)
        });
    }
    // An agent may ask while it brings its session back, before it is given a prompt.
    let expected = format!("{expected}; run.interrupted reason=wait_timeout");
    for agent in [Agent::Absent, Agent::Present { unsaid: true, is_command: false, told: Vec::new() }] {
        check(&[STARTED, AGENT, ASKED], &expected, |state, tokens| asked(state, tokens, WaitTimeout, agent));
    }
}

#[test]
fn a_message_that_comes_instead_of_an_answer_stands_last() {
    let expected = "run.cancel_requested why=new_message by=ada; token.revoked reason=cancelled; \
        run.resumed how=cancelled by=ada; input.queued input_seq=2 what=cancel; message.user msg=9 queued=true";
    check(&[STARTED, AGENT, PROMPTED, QUEUED, ASKED], expected, |state, tokens| {
        let told = vec![input("input.queued input_seq=2 what=cancel")];
        let agent = Agent::Present { unsaid: false, is_command: false, told };
        let behind = vec![draft("message.user msg=9 queued=true")];
        cancel(state, tokens, Cancel { why: NewMessage, by: "ada", dropped: Vec::new(), agent, behind })
    });
}

// I13: a person's word goes beyond a daemon's reason, and is not said twice.
#[test]
fn what_is_cancelled_already_is_cancelled_again_only_for_a_better_reason() {
    let requested = |why: &str| format!("run.cancel_requested why={why} by=ada");
    for (before, why, expected) in [
        ("user", User, String::new()),
        ("user", StopAll, String::new()),
        ("user", NewMessage, String::new()),
        ("stop_all", User, String::new()),
        ("new_message", NewMessage, String::new()),
        ("new_message", User, requested("user")),
        ("wait_timeout", StopAll, requested("stop_all")),
        ("wait_timeout", NewMessage, String::new()),
    ] {
        let cancelled = format!("run.cancel_requested why={before}");
        // Neither its end nor that of a wait is recorded: whoever cancelled it first did, or its agent does.
        check(&[STARTED, &cancelled], &expected, |state, tokens| asked(state, tokens, why, Agent::Absent));
        check(&[STARTED, "run.interrupted", &cancelled], &expected, |state, tokens| {
            asked(state, tokens, why, Agent::Absent)
        });
    }
}

#[test]
fn messages_are_dropped_with_a_run_after_it_and_without_one() {
    for (appends, expected) in [
        (&[STARTED, QUEUED][..], "run.cancel_requested by=ada dropped=[\"msg_2\"]; run.cancelled by=ada"),
        (&[STARTED, QUEUED, "run.completed"], "run.cancel_requested run=null by=ada dropped=[\"msg_2\"]"),
        (&["session.created", QUEUED], "run.cancel_requested run=null by=ada dropped=[\"msg_2\"]"),
        // A continuation that is owed is taken back, with its run's name.
        (&[STARTED, "run.interrupted"], "run.cancel_requested by=ada"),
        (&[STARTED, QUEUED, "run.interrupted"], "run.cancel_requested by=ada dropped=[\"msg_2\"]"),
        // An open run is named whoever cancelled it before.
        (
            &[STARTED, AGENT, PROMPTED, "run.cancel_requested", QUEUED],
            "run.cancel_requested by=ada dropped=[\"msg_2\"]",
        ),
    ] {
        check(appends, expected, |state, tokens| {
            assert!(is_possible(state), "{appends:?}");
            asked(state, tokens, User, Agent::Absent)
        });
    }
}

#[test]
fn without_a_run_a_continuation_or_a_queue_there_is_nothing_to_cancel() {
    for (appends, possible) in [
        (&["session.created"][..], false),
        (&[STARTED, "run.completed"], false),
        (&[STARTED, "run.interrupted", "run.cancel_requested"], false),
        (&[STARTED, "run.cancel_requested"], true),
        (&[STARTED, "run.interrupted"], true),
        (&["session.created", QUEUED], true),
    ] {
        assert_eq!(is_possible(&Log::of(appends).replay.state), possible, "{appends:?}");
    }
}
