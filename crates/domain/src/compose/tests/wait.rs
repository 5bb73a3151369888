//! Waits: opened with their tokens, answered, taken back.

use std::time::Duration;

use super::*;
use crate::compose::answer::{Answer, answer};
use crate::compose::wait::{NewWait, further_token, open, withdraw};
use crate::event::{Raw, WaitKind};
use crate::id::WaitId;
use crate::session::tests::log::session;
use crate::token::{Presented, sha256_hex};

fn wait_id(number: u8) -> WaitId {
    format!("wait_{number}").parse().expect("an id")
}

/// Opens `wait_1` at second 50.
fn new(kind: WaitKind, by: Option<&str>, timeout: Option<u64>) -> NewWait {
    NewWait {
        run_id: "run_1".parse().expect("an id"),
        wait_id: wait_id(1),
        resume_token_id: "rt_1".parse().expect("an id"),
        secret: [7; 32],
        kind,
        tool_call_id: by.is_none().then(|| "tool_1".into()),
        request: Raw::text("may I?").into_owned(),
        by: by.map(Into::into),
        idempotency_key: by.map(|_| "key".into()),
        now: at(50),
        timeout: timeout.map(Duration::from_secs),
    }
}

#[test]
fn a_wait_opens_with_its_own_token_which_lives_as_long() {
    let hash = sha256_hex(&[7; 32]);
    let of_agent = "run.waiting tool=1 request=REQUEST";
    let of_program = "run.waiting wait_kind=external tool=null request=REQUEST by=ada idempotency_key=key";
    for (waiting, kind, by, timeout) in [
        (of_agent, WaitKind::Permission, None, None),
        (of_agent, WaitKind::Permission, None, Some(60)),
        (of_program, WaitKind::External, Some("ada"), None),
        (of_program, WaitKind::External, Some("ada"), Some(60)),
    ] {
        let (deadline, expires) = timeout.map_or(("", ""), |_| (" deadline=110", " expires=110"));
        let expected = format!("{waiting}{deadline}; token.minted secret_hash=\"{hash}\"{expires}");
        // A text of a script has no spaces.
        let mut new = new(kind, by, timeout);
        new.request = Raw::text("REQUEST").into_owned();
        check(&[STARTED, AGENT, PROMPTED], &expected, |_, _| open(session(), new));
    }
}

#[test]
fn a_further_token_is_for_an_open_wait_alone() {
    let (_, token) = Presented::mint("rt_9".parse().expect("an id"), [7; 32]);
    let mint = |state: &SessionState, wait| {
        further_token(state, wait_id(wait), &token, at(200), "ada").map(Draft::from).into_iter().collect()
    };
    let minted = format!("token.minted token=9 secret_hash=\"{}\" expires=200 by=ada", token.secret_hash());
    check(&[STARTED, ASKED], &minted, |state, _| mint(state, 1));
    check(&[STARTED, ASKED], "", |state, _| mint(state, 2));
    check(&[STARTED, ASKED, "run.interrupted"], "", |state, _| mint(state, 1));
}

/// I7: one answer, one token consumed; all others of this wait are revoked, and those of other waits are not.
#[test]
fn an_answer_consumes_one_token_and_revokes_the_rest_of_its_wait() {
    let asked = &[STARTED, AGENT, PROMPTED, ASKED, ASKED_AGAIN, OUTSIDE][..];
    let told = || Some(input("input.queued input_seq=2 what=answer wait=2"));
    for (appends, wait, token, granted, told, expected) in [
        (
            asked,
            1,
            None,
            Some(true),
            None,
            "token.consumed answer_hash=HASH by=ada; run.resumed answer=yes by=ada granted=true",
        ),
        (
            asked,
            2,
            None,
            Some(false),
            told(),
            "token.consumed wait=2 answer_hash=HASH by=ada; run.resumed wait=2 answer=yes by=ada granted=false; \
             token.revoked wait=2 token=20 reason=answered; input.queued input_seq=2 what=answer wait=2",
        ),
        (
            asked,
            2,
            Some("rt_20"),
            Some(true),
            told(),
            "token.consumed wait=2 token=20 answer_hash=HASH by=ada; \
             run.resumed wait=2 answer=yes by=ada granted=true; \
             token.revoked wait=2 reason=answered; input.queued input_seq=2 what=answer wait=2",
        ),
        // No agent is told what a program waited for.
        (
            asked,
            3,
            None,
            None,
            None,
            "token.consumed wait=3 answer_hash=HASH by=ada; run.resumed wait=3 answer=yes by=ada; \
             token.revoked wait=3 token=30 reason=answered",
        ),
        // One that has ended is not ended again.
        (
            &[STARTED, OUTSIDE, "token.revoked token=30 wait=3 reason=x"],
            3,
            None,
            None,
            None,
            "token.consumed wait=3 answer_hash=HASH by=ada; run.resumed wait=3 answer=yes by=ada",
        ),
    ] {
        check(appends, expected, |state, tokens| {
            let run = state.open_run().expect("open");
            let wait = run.wait(wait_id(wait)).expect("open");
            let token = token.map(|token| token.parse().expect("an id"));
            let yes = Some(Raw::text("yes").into_owned());
            let given = Answer { by: "ada", token, hash: "HASH".into(), answer: yes, granted };
            assert_eq!(given.consumes(wait), token.unwrap_or(wait.resume_token_id));
            answer(run.run_id, wait, tokens, given, told)
        });
    }
}

#[test]
fn a_wait_that_is_taken_back_ends_with_all_its_tokens() {
    let expected = "token.revoked wait=2 reason=withdrawn; token.revoked wait=2 token=20 reason=withdrawn; \
        run.resumed wait=2 how=withdrawn by=agent";
    check(&[STARTED, ASKED, ASKED_AGAIN], expected, |_, tokens| {
        withdraw("run_1".parse().expect("an id"), wait_id(2), tokens)
    });
}
