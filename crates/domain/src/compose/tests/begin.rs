//! Beginning: with a message, from the queue, as a continuation.

use super::*;
use crate::compose::begin::{
    Given, Life, NewMessage, Placement, QueueFull, continuation, from_queue, message, prompt, session,
};
use crate::event::Raw;
use crate::session::MAX_QUEUED;

fn life() -> Life {
    Life { boot_id: "boot_b".parse().expect("an id"), machine_boot: Some("m2".into()) }
}

fn new(wait: Option<&str>) -> NewMessage {
    NewMessage {
        message_id: "msg_9".parse().expect("an id"),
        content: Raw::text("go").into_owned(),
        idempotency_key: Some("key".into()),
        wait_id: wait.map(|wait| wait.parse().expect("an id")),
    }
}

fn given(state: &SessionState, wait: Option<&str>, update: Option<&str>) -> Result<Given, QueueFull> {
    let run_id = "run_9".parse().expect("an id");
    message(state, new(wait), update.map(draft), run_id, &life())
}

#[test]
fn a_message_begins_a_run_or_gets_its_place_in_the_queue() {
    const NEW: &str = "message.user msg=9 content=\"go\" idempotency_key=key";
    const BEGUN: &str = "run.started run=9 boot=b machine_boot=m2 msg=9 attempt=1";
    const QUEUED: &str = "message.user msg=2 queued=true; message.user msg=3 queued=true";
    const CUT: &str = "run.interrupted";
    let new = |more: &str| format!("{NEW} {more}");
    let (now, queued) = (format!("{NEW}; {BEGUN}"), new("queued=true"));
    let oldest = "run.started run=9 boot=b machine_boot=m2 msg=2 attempt=1";
    for (appends, wait, turn, expected) in [
        (&["session.created"][..], None, Placement::Now, now.clone()),
        (&[STARTED, "run.completed"], None, Placement::Now, now.clone()),
        (&[STARTED, CUT], None, Placement::Now, now),
        (&[STARTED], None, Placement::Queued, queued.clone()),
        (&[STARTED, AGENT, PROMPTED, OUTSIDE], None, Placement::Queued, queued.clone()),
        (&[STARTED, AGENT, PROMPTED, ASKED], None, Placement::InsteadOfAnswer, queued.clone()),
        (&[STARTED, AGENT, PROMPTED, OUTSIDE, ASKED], None, Placement::InsteadOfAnswer, queued.clone()),
        (&[STARTED, QUEUED, "run.completed"], None, Placement::Queued, queued.clone()),
        // Nobody continues it any more: the oldest of those who wait has its turn.
        (&[STARTED, QUEUED, CUT], None, Placement::BehindOldest, format!("{queued}; {oldest}")),
        // The answer to a void wait comes before whatever waits.
        (
            &[STARTED, ASKED, QUEUED, CUT],
            Some("wait_1"),
            Placement::Now,
            format!("{}; {BEGUN}", new("wait=1")),
        ),
    ] {
        check(appends, &expected, |state, _| {
            let given = given(state, wait, None).expect("there is room");
            assert_eq!(given.turn, turn, "{appends:?}");
            given.records
        });
    }
}

#[test]
fn what_a_message_changes_of_its_session_leaves_it_first_or_last() {
    const UPDATE: &str = "session.updated env_names=[\"KEY\"] title=null provider=null";
    for (appends, expected) in [
        (
            &["session.created"][..],
            &[
                "message.user msg=9 content=\"go\" idempotency_key=key",
                "run.started run=9 boot=b machine_boot=m2 msg=9 attempt=1",
                UPDATE,
            ][..],
        ),
        (&[STARTED], &["message.user msg=9 content=\"go\" idempotency_key=key queued=true", UPDATE]),
        // Behind a cancel the message is the last record of its append.
        (&[STARTED, ASKED], &[UPDATE, "message.user msg=9 content=\"go\" idempotency_key=key queued=true"]),
    ] {
        check(appends, &expected.join(";"), |state, _| {
            given(state, None, Some(UPDATE)).expect("there is room").records
        });
    }
}

#[test]
fn a_full_queue_takes_no_more_messages() {
    let queued: Vec<String> = (0..MAX_QUEUED).map(|n| format!("message.user msg=q{n} queued=true")).collect();
    let state = Log::of(&[STARTED, &queued.join(";")]).replay.state;
    assert_eq!(given(&state, None, None), Err(QueueFull));
}

#[test]
fn the_queue_has_its_turn_and_what_was_cut_is_continued() {
    let run_id = "run_9".parse().expect("an id");
    let queued = &[STARTED, "message.user msg=2 queued=true", "run.completed"];
    check(queued, "run.started run=9 boot=b machine_boot=m2 msg=2 attempt=1", |state, _| {
        vec![from_queue(state.queue[0], run_id, &life()).into()]
    });
    for (appends, expected) in [
        (&[STARTED, "run.interrupted"][..], "attempt=2 continues=1 origin=1"),
        (
            &[
                STARTED,
                "run.interrupted",
                "run.started run=2 continues=1 origin=1 attempt=2",
                "run.interrupted run=2",
            ],
            "attempt=3 continues=2 origin=1",
        ),
    ] {
        let expected = format!("run.started run=9 boot=b machine_boot=m2 {expected}");
        check(appends, &expected, |state, _| {
            vec![continuation(state.run.as_ref().expect("a run"), run_id, &life()).into()]
        });
    }
}

#[test]
fn a_session_comes_to_be_alone_or_with_the_run_of_its_first_message() {
    let Event::SessionCreated(created) = draft("session.created").event else { panic!("another kind") };
    check(&[], "session.created", |_, _| session(created.clone(), None, &life()));
    let begun = "session.created; message.user msg=9 content=\"go\" idempotency_key=key; \
        run.started run=9 boot=b machine_boot=m2 msg=9 attempt=1";
    let first = Some((new(None), "run_9".parse().expect("an id")));
    check(&[], begun, |_, _| session(created, first, &life()));
}

#[test]
fn an_agent_that_was_not_there_is_never_silently_fresh() {
    let queued = "input.queued input_seq=1";
    check(&[STARTED, AGENT], queued, |_, _| prompt(input(queued), false, None));
    let told = format!("session.restored method=context verdict=reprimed; {queued}");
    check(&[STARTED, AGENT], &told, |_, _| prompt(input(queued), true, None));
}
