//! Every row and clause of the table of statuses, what does not change one, and the evidence beside it.

mod naive;

use serde_json::json;

use super::*;
use crate::session::tests::log::Log;
use crate::session::tests::script::{at, now};

use HolderProof::{Gone, Lock, Pending, Unresponsive};
use SessionStatus::{Idle, InterruptedAgent, InterruptedStartup, InterruptedWaiting, Running, Waiting};

/// Records 1 to 3: a run that began in boot a, at second 3.
const STARTED: &str = "session.created; message.user; run.started msg=1";
/// Its agent.
const AGENT: &str = "agent.launching; agent.started";
/// A wait with its own token.
const WAIT: &str = "run.waiting; token.minted";
/// Another one.
const SECOND_WAIT: &str = "run.waiting wait=2; token.minted wait=2";
/// What recovery of boot a would write.
const RESTARTED: &str = "run.interrupted reason=process_restart";

/// What the daemon that began the run sees.
fn here(holder: HolderProof) -> Observed {
    Observed { boot: "boot_a".parse().ok(), holder, now: now(at(1000)) }
}

/// What the next daemon sees.
fn later(holder: HolderProof) -> Observed {
    Observed { boot: "boot_b".parse().ok(), ..here(holder) }
}

/// What a reader sees without a daemon.
fn offline(holder: HolderProof) -> Observed {
    Observed { boot: None, ..here(holder) }
}

fn project_log(log: &Log, seen: &Observed) -> Derived {
    project(&log.replay.state, log.tokens(), seen)
}

/// Checks the status of a log, and the second since which it holds.
fn check(appends: &[&str], seen: &Observed, expected: SessionStatus, since: i64) {
    let derived = project_log(&Log::of(appends), seen);
    let context = format!("{appends:#?}, {seen:?}");
    assert_eq!((derived.status, derived.since), (expected, at(since)), "{context}");
}

// I9: only a proof makes the run of an earlier daemon an interrupted one.
#[test]
fn a_run_of_another_boot_is_interrupted_only_when_its_holder_is_proven_gone() {
    let exited = &[STARTED, AGENT, "agent.exited"][..];
    for (appends, proof, expected) in [
        (&[STARTED][..], Pending, InterruptedStartup),
        (&[STARTED], Lock, InterruptedStartup),
        (&[STARTED, AGENT], Gone, InterruptedStartup),
        (&[STARTED, AGENT], Pending, Running),
        (&[STARTED, AGENT], Lock, Running),
        (&[STARTED, AGENT], Unresponsive, Running),
        (exited, Pending, InterruptedStartup),
        (exited, Unresponsive, InterruptedStartup),
        (&[STARTED, AGENT, "agent.exited", "agent.launching holder=2"], Pending, Running),
        (&[STARTED, AGENT, "agent.exited", "agent.launching holder=2"], Gone, InterruptedStartup),
        (&["session.created", AGENT, "message.user; run.started"], Lock, Running),
    ] {
        let since = if appends[0] == STARTED { 3 } else { 5 };
        check(appends, &later(proof), expected, since);
        check(appends, &offline(proof), expected, since);
    }
}

#[test]
fn a_run_of_this_boot_is_running_whatever_is_seen_of_its_holder() {
    for proof in [Pending, Lock, Unresponsive, Gone] {
        check(&[STARTED], &here(proof), Running, 3);
        check(&[STARTED, AGENT], &here(proof), Running, 3);
        check(&[STARTED, AGENT, "agent.exited"], &here(proof), Running, 3);
        check(&[STARTED, AGENT, "run.cancel_requested"], &here(proof), Running, 3);
    }
}

#[test]
fn an_adopted_run_belongs_to_the_boot_that_adopted_it() {
    let adopted = &[STARTED, AGENT, "run.adopted boot=b"];
    check(adopted, &later(Gone), Running, 3);
    check(adopted, &here(Gone), InterruptedStartup, 3);
    check(adopted, &here(Lock), Running, 3);
    // Found interrupted, then taken over with a new agent because its prompt had reached nobody.
    check(&[STARTED], &later(Gone), InterruptedStartup, 3);
    check(&[STARTED, "run.adopted boot=b; agent.launching"], &later(Gone), Running, 3);
    check(&[STARTED, AGENT, WAIT, "run.adopted boot=b"], &later(Gone), Waiting, 6);
    let again = &[STARTED, "run.adopted boot=b", "run.adopted boot=c"];
    check(again, &later(Gone), InterruptedStartup, 3);
}

#[test]
fn a_run_that_was_interrupted_tells_by_what() {
    for (reason, expected) in [
        ("process_restart", InterruptedStartup),
        ("machine_restart", InterruptedStartup),
        ("holder_lost", InterruptedStartup),
        ("node_lost", InterruptedStartup),
        ("agent_exit", InterruptedAgent),
        ("wait_timeout", InterruptedWaiting),
        // A reason of another version: it was cut, that much is sure.
        ("process_exit", InterruptedStartup),
    ] {
        let ended = format!("run.interrupted reason={reason}");
        for seen in [here(Lock), here(Gone), later(Pending), offline(Gone)] {
            check(&[STARTED, &ended], &seen, expected, 4);
            check(&[STARTED, WAIT, "run.resumed", &ended], &seen, expected, 7);
            // While it was waiting, that counts more than the reason.
            check(&[STARTED, WAIT, &ended], &seen, InterruptedWaiting, 6);
            check(&[STARTED, WAIT, &format!("{ended}; token.revoked")], &seen, InterruptedWaiting, 6);
        }
    }
}

#[test]
fn a_wait_that_nobody_can_answer_is_an_interrupted_one() {
    for (appends, since) in [
        (&[STARTED, "run.waiting"][..], 4),
        (&[STARTED, "run.waiting", "token.minted token=2"], 4),
        (&[STARTED, "run.waiting; token.minted expires=900"], 4),
        (&[STARTED, "run.waiting; token.minted expires=1000"], 4),
        (&[STARTED, "run.waiting deadline=900; token.minted"], 4),
        (&[STARTED, "run.waiting deadline=1000; token.minted"], 4),
        (&[STARTED, "run.waiting deadline=900; token.minted expires=2000"], 4),
        (&[STARTED, WAIT, "token.revoked"], 4),
        (&[STARTED, WAIT, "token.expired"], 4),
        (&[STARTED, WAIT, "token.consumed"], 4),
        (&[STARTED, WAIT, "token.minted token=9; token.revoked"], 4),
        // One of two is enough, the first or the second; since the oldest began.
        (&[STARTED, WAIT, SECOND_WAIT, "token.revoked wait=1"], 4),
        (&[STARTED, WAIT, SECOND_WAIT, "token.revoked wait=2"], 4),
        (&[STARTED, WAIT, "run.waiting wait=2"], 4),
        (&[STARTED, WAIT, SECOND_WAIT, "run.resumed wait=1", "token.consumed wait=2"], 6),
    ] {
        for seen in [here(Lock), here(Gone), later(Lock), later(Pending), later(Gone), offline(Unresponsive)]
        {
            check(appends, &seen, InterruptedWaiting, since);
        }
    }
}

// I9: a wait survives the daemon; only the proven end of its holder voids it.
#[test]
fn an_answerable_wait_is_interrupted_only_with_its_holder() {
    let waiting = &[STARTED, AGENT, WAIT][..];
    for (appends, seen, expected) in [
        (waiting, later(Gone), InterruptedWaiting),
        (waiting, offline(Gone), InterruptedWaiting),
        (waiting, later(Lock), Waiting),
        (waiting, later(Pending), Waiting),
        (waiting, later(Unresponsive), Waiting),
        (waiting, offline(Pending), Waiting),
        (waiting, here(Gone), Waiting),
        (&[STARTED, AGENT, WAIT, "agent.exited"], later(Lock), InterruptedWaiting),
        (&[STARTED, AGENT, WAIT, "agent.exited"], here(Lock), Waiting),
    ] {
        check(appends, &seen, expected, 6);
    }
    check(&[STARTED, WAIT], &later(Lock), InterruptedWaiting, 4);
}

#[test]
fn an_open_wait_with_an_active_token_is_waiting_since_the_oldest() {
    for (appends, expected, since) in [
        (&[STARTED, WAIT][..], Waiting, 4),
        (&[STARTED, "run.waiting deadline=1001; token.minted expires=1001"], Waiting, 4),
        (&[STARTED, "token.minted", "run.waiting"], Waiting, 5),
        (&[STARTED, WAIT, SECOND_WAIT], Waiting, 4),
        (&[STARTED, WAIT, SECOND_WAIT, "token.consumed; run.resumed"], Waiting, 6),
        (&[STARTED, WAIT, SECOND_WAIT, "token.consumed wait=2; run.resumed wait=2"], Waiting, 4),
        // Another token of the same wait has no say in it.
        (&[STARTED, WAIT, "token.minted token=9 expires=10", "token.revoked token=9"], Waiting, 4),
        (&[STARTED, WAIT, "token.consumed; run.resumed"], Running, 3),
        (&[STARTED, WAIT, "token.revoked; run.resumed how=withdrawn"], Running, 3),
        (&[STARTED, WAIT, "run.cancel_requested; token.revoked; run.resumed how=cancelled"], Running, 3),
    ] {
        check(appends, &here(Lock), expected, since);
    }
}

#[test]
fn without_a_run_or_after_its_own_end_a_session_is_idle() {
    for (appends, since) in [
        (&["session.created"][..], 1),
        (&["session.created", "message.user queued=true", AGENT], 1),
        (&["session.created; session.closed"], 1),
        (&[STARTED, "run.completed"], 4),
        (&[STARTED, "run.failed"], 4),
        (&[STARTED, "run.cancelled"], 4),
        (&[STARTED, AGENT, WAIT, "run.completed"], 8),
        (&[STARTED, "run.cancel_requested", "run.cancelled"], 5),
        (&[STARTED, RESTARTED, "run.started run=2 continues=1", "run.completed run=2"], 6),
    ] {
        for seen in [here(Lock), later(Gone), later(Pending), offline(Gone)] {
            check(appends, &seen, Idle, since);
        }
    }
}

// I8: what is derived follows the runs alone, not what was said of them.
#[test]
fn an_interrupted_status_stays_until_the_next_run() {
    let log = &[STARTED, RESTARTED][..];
    for after in [
        "session.closed",
        "session.updated title=new",
        "run.cancel_requested",
        "run.cancel_requested why=stop_all",
        "run.cancel_requested run=null why=new_message",
        "message.user msg=2 queued=true",
        "message.user msg=2 wait=1",
        "agent.launching holder=2; agent.started holder=2; agent.ready holder=2",
        "agent.notice",
        "status.derived status=idle",
        "session.deleted",
    ] {
        for seen in [here(Lock), later(Pending)] {
            check(&[log, &[after]].concat(), &seen, InterruptedStartup, 4);
        }
    }
    check(&[log, &["run.started run=2 continues=1"]].concat(), &here(Lock), Running, 5);
    check(&[STARTED, WAIT, RESTARTED, "run.started run=2"], &here(Lock), Running, 7);
}

// I9: only proof makes a wait void while its run goes on, and only one of the agent's.
#[test]
fn a_wait_is_void_once_its_run_has_ended_or_its_agent_is_proven_gone() {
    let outside = "run.waiting wait_kind=external; token.minted";
    let ended = "run.interrupted";
    for (appends, proof, expected) in [
        (&[STARTED, AGENT, WAIT][..], Pending, WaitState::Open),
        (&[STARTED, AGENT, WAIT], Lock, WaitState::Open),
        (&[STARTED, AGENT, WAIT], Unresponsive, WaitState::Open),
        (&[STARTED, AGENT, WAIT], Gone, WaitState::Void),
        (&[STARTED, AGENT, WAIT, ended], Pending, WaitState::Void),
        (&[STARTED, AGENT, WAIT, ended], Lock, WaitState::Void),
        // Its deadline and its token are another matter: the status tells of those.
        (&[STARTED, AGENT, "run.waiting deadline=5; token.minted", "token.revoked"], Lock, WaitState::Open),
        // A program is answered whatever becomes of the agent, as long as there is a run.
        (&[STARTED, AGENT, outside], Gone, WaitState::Open),
        (&[STARTED, AGENT, outside, ended], Pending, WaitState::Void),
    ] {
        let state = Log::of(appends).replay.state;
        let run = state.run.as_ref().expect("a run");
        assert_eq!(wait_state(run, &run.waits[0], proof), expected, "{appends:?} {proof:?}");
    }
}

// I8: a recorded status is for subscribers; the projector does not believe it.
#[test]
fn a_recorded_status_changes_nothing() {
    for status in ["interrupted_startup", "interrupted_waiting", "waiting", "running", "idle", "asleep"] {
        let recorded = format!("status.derived status={status}");
        check(&["session.created", &recorded], &later(Gone), Idle, 1);
        check(&[STARTED, &recorded], &here(Lock), Running, 3);
        check(&[STARTED, &recorded], &later(Gone), InterruptedStartup, 3);
        check(&[STARTED, WAIT, &recorded], &here(Lock), Waiting, 4);
    }
}

#[test]
fn a_clock_behind_the_newest_record_expires_nothing() {
    // Six records: the newest is of second 6.
    let timed = &[STARTED, "run.waiting deadline=2; token.minted expires=2", "message.agent"];
    for (wall, expected) in [(1, Waiting), (5, Waiting), (6, InterruptedWaiting), (7, InterruptedWaiting)] {
        check(timed, &Observed { now: now(at(wall)), ..here(Lock) }, expected, 4);
    }
    // What is proven by other means is proven at any time.
    check(
        &[STARTED, WAIT, "token.revoked"],
        &Observed { now: now(at(1)), ..here(Lock) },
        InterruptedWaiting,
        4,
    );
    check(timed, &Observed { now: now(at(1)), ..later(Gone) }, InterruptedWaiting, 4);
    check(&[STARTED], &Observed { now: now(at(1)), ..later(Gone) }, InterruptedStartup, 3);
}

// I8: a status says how it is known.
#[test]
fn the_evidence_names_boot_holder_output_wait_and_prompt() {
    let evidence = |appends: &[&str], seen: &Observed| {
        serde_json::to_value(project_log(&Log::of(appends), seen).evidence).expect("JSON")
    };
    assert_eq!(
        evidence(&["session.created"], &here(Lock)),
        json!({"boot_id": null, "holder": null, "last_output_at": null, "last_seq": 1, "open_wait": null, "in_flight": []})
    );
    let running = &[STARTED, AGENT, "input.queued input_seq=1", "message.agent src=9"][..];
    let expected = json!({
        "boot_id": "boot_a",
        "holder": {"id": "h_1", "alive": true, "proof": "lock", "pid": 10, "started": 100},
        "last_output_at": at(7), "last_seq": 7, "open_wait": null, "in_flight": ["prompt"],
    });
    assert_eq!(evidence(running, &later(Lock)), expected);
    // A second holder has not run yet and has said nothing; an answer is not a prompt.
    let relaunched = &[STARTED, AGENT, "message.agent src=9", "agent.launching holder=2"][..];
    let answered = [relaunched, &["input.queued holder=2 input_seq=1 what=answer"]].concat();
    let expected = json!({
        "boot_id": "boot_a", "holder": {"id": "h_2", "alive": null, "proof": "pending"},
        "last_output_at": null, "last_seq": 8, "open_wait": null, "in_flight": [],
    });
    assert_eq!(evidence(&answered, &here(Pending)), expected);
    // The oldest wait, the newest boot; a prompt is not in flight once its run has ended.
    let waits = [running, &[WAIT, SECOND_WAIT, "run.adopted boot=b"]].concat();
    let found = evidence(&waits, &later(Lock));
    assert_eq!((&found["boot_id"], &found["open_wait"]), (&json!("boot_b"), &json!("wait_1")));
    let found = evidence(&[&waits[..], &["run.resumed"]].concat(), &later(Lock));
    assert_eq!(found["open_wait"], "wait_2");
    let found = evidence(&[&waits[..], &[RESTARTED]].concat(), &later(Gone));
    assert_eq!((&found["open_wait"], &found["in_flight"]), (&json!(null), &json!([])));
}

// I9: a holder that does not answer is not called dead.
#[test]
fn the_evidence_of_a_holder_says_alive_only_as_far_as_it_is_known() {
    for (appends, proof, expected) in [
        (&[STARTED, AGENT][..], Pending, (None, Pending)),
        (&[STARTED, AGENT], Lock, (Some(true), Lock)),
        (&[STARTED, AGENT], Unresponsive, (Some(true), Unresponsive)),
        (&[STARTED, AGENT], Gone, (Some(false), Gone)),
        // A recorded end is a proof of its own.
        (&[STARTED, AGENT, "agent.exited"], Pending, (Some(false), Gone)),
        (&[STARTED, AGENT, "agent.exited"], Lock, (Some(false), Gone)),
    ] {
        let holder = project_log(&Log::of(appends), &later(proof)).evidence.holder.expect("recorded");
        assert_eq!((holder.alive, holder.proof), expected, "{appends:?} {proof:?}");
    }
}

#[test]
fn the_words_of_the_statuses_are_the_same_everywhere_and_in_order_of_precedence() {
    let words = "interrupted_startup interrupted_waiting interrupted_agent waiting running idle";
    let all = [InterruptedStartup, InterruptedWaiting, InterruptedAgent, Waiting, Running, Idle];
    assert!(all.is_sorted());
    assert_eq!(all.map(SessionStatus::as_str).join(" "), words);
    for status in all {
        assert_eq!(serde_json::to_value(status).expect("JSON"), json!(status.to_string()));
        assert_eq!(serde_json::from_value::<SessionStatus>(json!(status.as_str())).ok(), Some(status));
    }
}
