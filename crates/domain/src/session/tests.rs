//! What may follow what: every kind of event that the fold refuses, with its reason, and what it does otherwise.

mod effects;
pub(crate) mod log;
mod properties;
mod replay;
pub(crate) mod script;

use super::*;
use crate::event::{Effect, Event, Kind};
use crate::token::TokenIndex;
use log::{Log, session};
use script::{at, draft};

/// One of every kind.
const SAMPLES: &str = include_str!("../event/samples.jsonl");

/// A session with an open run.
const STARTED: &str = "session.created; message.user; run.started msg=1";
/// Its agent, with one input queued.
const AGENT: &str = "agent.launching; agent.started; agent.ready cursor=c; input.queued input_seq=1";
const WAIT: &str = "run.waiting; token.minted";
const CUT: &str = "run.interrupted";

/// Checks whether an event may follow a log, and with which reason if not (`""` says that it may). A refused
/// event leaves the state as it was.
fn check(appends: &[&str], event: &str, expected: &str) {
    let before = Log::of(appends).replay.state;
    let mut after = before.clone();
    let outcome = after.apply(before.last_seq + 1, at(100), &draft(event).event);
    let context = format!("{event} after {appends:?}");
    match outcome {
        Ok(()) => assert_eq!("", expected, "{context} was accepted"),
        Err(illegal) => {
            assert_ne!("", expected, "{context}: {illegal}");
            assert!(illegal.why.contains(expected), "{context}: {illegal}");
            assert!(event.starts_with(&illegal.kind), "{context}: {illegal}");
            assert_eq!(after, before, "{context} was refused and yet left a trace");
        }
    }
}

fn samples() -> impl Iterator<Item = (Kind, Event<'static>)> {
    SAMPLES.lines().map(|text| {
        let kind = text.split('"').nth(3).and_then(Kind::from_name).expect("a known kind");
        (kind, Event::read(kind.as_str(), text).expect("readable"))
    })
}

// I6: a run ends exactly once, whatever its end was and whatever comes second.
#[test]
fn a_run_ends_exactly_once() {
    let ends = ["run.completed", "run.failed", "run.cancelled", "run.interrupted"];
    for first in ends {
        check(&[STARTED], first, "");
        check(&[STARTED, WAIT], first, "");
        check(&["session.created"], first, "no run was started");
        check(&[STARTED], &format!("{first} run=2"), "the latest run is run_1, not run_2");
        for second in ends {
            check(&[STARTED, first], second, "run_1 has ended");
            check(&[STARTED, first, "run.started run=2"], second, "the latest run is run_2, not run_1");
        }
    }
}

// I6: nothing happens in a run that has ended, or that is not the latest.
#[test]
fn what_happens_in_a_run_happens_in_the_open_one() {
    let ended = &[STARTED, "run.completed"];
    let next = &[STARTED, "run.completed", "run.started run=2"];
    for event in ["run.waiting wait=3", "run.adopted boot=b"] {
        check(&[STARTED], event, "");
        check(&["session.created"], event, "no run was started");
        check(ended, event, "run_1 has ended");
        check(&[STARTED, CUT], event, "run_1 has ended");
        check(next, event, "the latest run is run_2, not run_1");
    }
    for (appends, event, expected) in [
        (&[STARTED][..], "run.resumed", "wait_1 is not open"),
        (&[STARTED, WAIT], "run.resumed", ""),
        (&[STARTED, WAIT], "run.resumed wait=2", "wait_2 is not open"),
        (&[STARTED, WAIT], "run.resumed run=2", "not run_2"),
        (&[STARTED, WAIT, "run.resumed"], "run.resumed", "wait_1 is not open"),
        (&[STARTED, WAIT, CUT], "run.resumed", "run_1 has ended"),
        (&[STARTED, WAIT], "run.waiting", "wait_1 is open already"),
        (&[STARTED, WAIT], "run.waiting wait=2", ""),
        (&[STARTED, WAIT, "run.resumed"], "run.waiting", ""),
    ] {
        check(appends, event, expected);
    }
}

#[test]
fn a_run_starts_only_when_none_is_open_and_the_session_takes_prompts() {
    for (appends, event, expected) in [
        (&["session.created"][..], "run.started", ""),
        (&[STARTED], "run.started run=2", "run_1 has not ended"),
        (&[STARTED], "run.started", "run_1 has not ended"),
        (&[STARTED, "run.cancel_requested"], "run.started run=2", "run_1 has not ended"),
        (&[STARTED, "run.completed"], "run.started run=2", ""),
        (&[STARTED, "run.completed"], "run.started", "run_1 was started before"),
        (&[STARTED, CUT], "run.started", "run_1 was started before"),
        (&[STARTED, CUT], "run.started run=2 continues=1 attempt=2", ""),
        (&["session.created; session.closed"], "run.started", "the session is closed"),
        (&[STARTED, CUT, "session.closed"], "run.started run=2", "the session is closed"),
    ] {
        check(appends, event, expected);
    }
}

#[test]
fn a_run_has_each_checkpoint_once_and_only_when_it_is_time() {
    let (start, end) = ("run.checkpoint at=start", "run.checkpoint at=end");
    for (appends, event, expected) in [
        (&["session.created"][..], start, "no run was started"),
        (&[STARTED], start, ""),
        (&[STARTED], "run.checkpoint run=2 at=start", "the latest run is run_1, not run_2"),
        (&[STARTED, start], start, "run_1 has a checkpoint at its start already"),
        (&[STARTED, AGENT], start, "the prompt of run_1 was given to an agent before"),
        (&[STARTED, "run.cancelled"], start, "run_1 has ended"),
        (&[STARTED], end, "owed no checkpoint"),
        (&[STARTED, start], end, "run_1 goes on"),
        (&[STARTED, start, "run.completed"], end, ""),
        (&[STARTED, start, CUT], end, ""),
        (&[STARTED, "run.completed"], end, "owed no checkpoint"),
        (&[STARTED, start, "run.completed", end], end, "owed no checkpoint"),
        (&[STARTED, start, "run.completed", "run.started run=2"], end, ""),
        (&[STARTED, start, "run.completed", "run.started run=2", end], end, "owed no checkpoint"),
        (&[STARTED, start, "run.completed", "session.closed"], end, ""),
    ] {
        check(appends, event, expected);
    }
}

#[test]
fn drift_is_found_before_the_prompt_of_an_open_run() {
    let drift = "run.drift agent=null";
    for (appends, event, expected) in [
        (&["session.created"][..], drift, "no run was started"),
        (&[STARTED], drift, ""),
        (&[STARTED, drift], drift, ""),
        (&[STARTED], "run.drift agent=null run=2", "the latest run is run_1, not run_2"),
        (&[STARTED, AGENT], drift, "the prompt of run_1 was given to an agent before"),
        (&[STARTED, "run.cancelled"], drift, "run_1 has ended"),
    ] {
        check(appends, event, expected);
    }
}

// I13: a cancel is taken while anything is left that could go on, and names what it cancels.
#[test]
fn a_cancel_is_legal_while_something_could_go_on() {
    let named =
        &["run.cancel_requested", "run.cancel_requested why=stop_all", "run.cancel_requested why=later"];
    for event in named {
        check(&[STARTED], event, "");
        check(&[STARTED, "run.cancel_requested"], event, "");
        check(&[STARTED, CUT], event, "");
        check(&[STARTED, CUT, "session.closed"], event, "");
        for end in ["run.completed", "run.failed", "run.cancelled"] {
            check(&[STARTED, end], event, "run_1 has ended");
        }
        check(&["session.created"], event, "run_1 is not the latest run");
        check(&[STARTED, CUT, "run.started run=2"], event, "run_1 is not the latest run");
    }
    for (appends, expected) in [
        (&["session.created"][..], ""),
        (&[STARTED, "run.completed"], ""),
        (&[STARTED, CUT], ""),
        (&[STARTED], "run_1 is open and must be named"),
    ] {
        check(appends, "run.cancel_requested run=null", expected);
    }
}

#[test]
fn an_agents_records_belong_to_the_latest_holder() {
    for event in ["agent.started", "agent.ready", "agent.exited", "input.queued input_seq=2"] {
        check(&["session.created", AGENT], event, "");
        check(&["session.created"], event, "no agent was launched");
        let relaunched = &["session.created", AGENT, "agent.launching holder=2"];
        check(relaunched, event, "the latest holder is h_2, not h_1");
    }
    for (appends, event, expected) in [
        (&["session.created", AGENT][..], "agent.launching holder=2", ""),
        (&["session.created", AGENT, "agent.exited"], "agent.launching", ""),
        // A number is given to one input only: numbers go up, and may skip.
        (
            &["session.created", AGENT],
            "input.queued input_seq=0",
            "input 0 of holder h_1 is taken: the newest is 1",
        ),
        (&["session.created", AGENT], "input.queued input_seq=1", "input 1 of holder h_1 is taken"),
        (&["session.created", AGENT], "input.queued input_seq=5", ""),
        (&["session.created", "agent.launching"], "input.queued input_seq=0", "is taken"),
        (&["session.created", AGENT, "agent.launching holder=2"], "input.queued holder=2 input_seq=1", ""),
    ] {
        check(appends, event, expected);
    }
}

#[test]
fn a_session_is_created_and_closed_once() {
    for (appends, event, expected) in [
        (&[][..], "session.created", ""),
        (&["session.created"], "session.created", "the session exists already"),
        (&["session.created"], "session.closed", ""),
        (&[STARTED], "session.closed", ""),
        (&["session.created; session.closed"], "session.closed", "closed already"),
        (&["session.created; session.closed"], "message.user", "the session is closed"),
        (&["session.created; session.closed"], "message.user queued=true", "the session is closed"),
        // What was begun before goes on to its end, and properties may change.
        (&[STARTED, "session.closed"], "run.completed", ""),
        (&[STARTED, "session.closed"], "run.adopted boot=b", ""),
        (&["session.created; session.closed"], "session.updated title=new", ""),
        (&["session.created; session.closed"], "session.deleted", ""),
        (&[STARTED, AGENT, WAIT], "session.deleted", ""),
    ] {
        check(appends, event, expected);
    }
}

#[test]
fn before_the_beginning_and_after_the_deletion_nothing_is_possible() {
    let deleted = Log::of(&["session.created; session.deleted"]).replay.state;
    let unknown = draft("galaxy.merged").event;
    let every = samples().map(|(_, event)| event).chain([unknown]);
    for event in every {
        let mut state = deleted.clone();
        let refused = state.apply(3, at(3), &event).expect_err("deleted");
        assert_eq!((refused.why.as_str(), &state), ("the session is deleted", &deleted), "{event:?}");
        let empty = SessionState::empty(session());
        let mut state = empty.clone();
        if !matches!(event, Event::SessionCreated(_)) {
            let refused = state.apply(1, at(1), &event).expect_err("not created");
            assert_eq!((refused.why.as_str(), &state), ("a log begins with session.created", &empty));
        }
    }
}

#[test]
fn a_kind_of_a_newer_version_passes_and_changes_nothing() {
    check(&["session.created"], "galaxy.merged stars=5", "");
    let before = Log::of(&[STARTED, AGENT, WAIT]).replay.state;
    let mut after = before.clone();
    assert_eq!(after.apply(99, at(99), &draft("galaxy.merged").event), Ok(()));
    assert_eq!(after, before);
}

#[test]
fn a_kind_changes_what_the_table_of_kinds_says_it_changes() {
    let log =
        Log::of(&[STARTED, AGENT, WAIT, "tool.call tool=2", "token.minted token=2; token.minted token=3"]);
    for (kind, event) in samples() {
        let (mut state, mut tokens) = (log.replay.state.clone(), log.tokens().clone());
        // Some of these cannot follow; then they change nothing anyway.
        let _ = state.apply(99, at(99), &event);
        let _ = tokens.apply(99, at(99), &event);
        let (may_change_state, may_change_tokens) = match kind.effect() {
            Effect::State => (true, false),
            Effect::Token => {
                // The state only counts them.
                state.token_records = log.replay.state.token_records;
                (false, true)
            }
            Effect::Task | Effect::Pipeline | Effect::Position => (false, false),
        };
        let changed = (state != log.replay.state, tokens != *log.tokens());
        assert!(!changed.0 || may_change_state, "{} changes the state", kind.as_str());
        assert!(!changed.1 || may_change_tokens, "{} changes the tokens", kind.as_str());
    }
    // A minted token is seen at once: the index is not passed over by accident.
    let mut tokens: TokenIndex = log.tokens().clone();
    tokens.apply(99, at(99), &draft("token.minted wait=9").event).expect("a new token");
    assert_ne!(tokens, *log.tokens());
}

// I5: keys are bounded, and the oldest goes first.
#[test]
fn as_many_keys_of_messages_are_known_as_is_promised() {
    let mut state = Log::of(&["session.created"]).replay.state;
    let first = state.last_seq + 1;
    for number in 0..=MAX_MESSAGE_KEYS as u64 {
        let message = draft(&format!("message.user msg={number} idempotency_key=key-{number}"));
        state.apply(first + number, at(1), &message.event).expect("it may follow");
    }
    let find = |name: &str| {
        let wanted = MessageKey::new(name, 0);
        let found = state.message_keys.iter().find(|known| known.is_like(wanted));
        found.map(|known| known.seq - first)
    };
    assert_eq!((find("key-0"), find("key-1"), find("key-10000")), (None, Some(1), Some(10_000)));
    assert_eq!(state.message_keys.len(), MAX_MESSAGE_KEYS);
}
