//! The daemon dies between any two effects of everything it does, one after the other: whatever it was about to record,
//! start or send. Places are not named here but counted, so that a new one is tried without a word in this file.

use std::sync::atomic::{AtomicUsize, Ordering};

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// More places than anything here comes by.
const MOST: usize = 300;

/// Something that is done while the daemon dies at some place, and what must be so in the end.
struct Scenario {
    /// How many places it comes by at least.
    at_least: usize,
    /// Done before, by a daemon that does not die if one is needed.
    before: fn(&mut Lab) -> String,
    /// Done by one that dies, and by its successor.
    act: fn(&mut Lab, &str),
    /// Looked at when both are gone and a third has begun.
    after: fn(&Lab, &str, &str),
}

/// Has the daemon die at every place that a scenario comes by. Two at a time: most of it is waiting for processes.
fn die_everywhere(scenario: &Scenario) {
    let (next, end) = (AtomicUsize::new(1), AtomicUsize::new(MOST));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= end.load(Ordering::Relaxed) {
                return;
            }
            if !die_at(scenario, place) {
                end.fetch_min(place, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let end = end.into_inner();
    assert!(end > scenario.at_least, "it came by {end} places only");
    assert!(end < MOST, "there is no end of places");
}

/// Has the daemon die at a place; tells whether it came by it.
fn die_at(scenario: &Scenario, place: usize) -> bool {
    let mut lab = Lab::without_daemon();
    let id = (scenario.before)(&mut lab);
    if !lab.dead() {
        lab.kill();
    }
    lab.start_to_die(&format!("*#{place}"));
    (scenario.act)(&mut lab, &id);
    lab.start_if_dead();
    lab.restart();
    let log = lab.daemon_log();
    let died_at = log.lines().find_map(|line| line.strip_prefix("dies at "));
    (scenario.after)(&lab, &id, &format!("place {place}, {}", died_at.unwrap_or("none")));
    died_at.is_some()
}

/// Does something until it is done, by whichever daemon lives.
#[track_caller]
fn insist<T>(lab: &mut Lab, what: &str, mut done: impl FnMut(&Lab) -> Option<T>) -> T {
    wait_for(what, || {
        lab.start_if_dead();
        done(lab)
    })
}

/// Asks for something under a key until it is taken.
#[track_caller]
fn insist_on_post(lab: &mut Lab, path: &str, key: &str, body: &Value) -> Value {
    insist(lab, path, |lab| {
        let reply = lab.try_ask("POST", path, &format!("Idempotency-Key: {key}\r\n"), body)?;
        assert!(reply.status < 300 || reply.status == 503, "{path}: {} {}", reply.status, reply.body);
        (reply.status < 300).then_some(reply.body)
    })
}

/// Waits for records of a kind.
#[track_caller]
fn insist_on_records(lab: &mut Lab, id: &str, kind: &str, count: usize) {
    insist(lab, kind, |lab| (lab.try_count(id, kind)? >= count).then_some(()));
}

/// What is so after every scenario: a log without gaps, one agent at most, and no holder that nobody knows.
#[track_caller]
fn check(lab: &Lab, id: &str, place: &str, agents: usize) {
    let seqs: Vec<u64> = lab.log(id).iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{place}");
    assert_eq!(lab.agents().len(), agents, "{place}: {:?}", lab.kinds(id));
    assert_eq!((lab.living_agents().len(), lab.living_holders().len()), (1, 1), "{place}");
}

// I1, I4, I5
#[test]
fn dying_anywhere_while_a_session_begins_and_ends_its_turn() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |_| String::new(),
        act: |lab, _| {
            let body = lab.session("say hello");
            let made = insist_on_post(lab, "/api/sessions", "create", &body);
            let id = made["id"].as_str().expect("an id").to_owned();
            insist_on_records(lab, &id, "run.completed", 1);
        },
        after: |lab, _, place| {
            let list = lab.get("/api/sessions")["sessions"].clone();
            assert_eq!(list.as_array().map(Vec::len), Some(1), "{place}");
            let id = list[0]["id"].as_str().expect("an id").to_owned();
            check(lab, &id, place, 1);
            assert_eq!((lab.count(&id, "run.started"), lab.prompted("say hello")), (1, 1), "{place}");
            assert_eq!(lab.count(&id, "run.interrupted"), 0, "{place}");
            assert_eq!(lab.said(&id), "hello", "{place}");
        },
    });
}

// I4, I5, I7
#[test]
fn dying_anywhere_while_a_question_is_asked_and_answered() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("barrier here\nask may I?\nsay thanks");
            lab.reach("here");
            id
        },
        act: |lab, id| {
            lab.pass("here");
            let wait = insist(lab, "a wait", |lab| {
                lab.try_get("/api/waits")?["waits"][0]["wait_id"].as_str().map(str::to_owned)
            });
            let answer = json!({"option": "allow_once"});
            insist(lab, "the answer", |lab| {
                let reply = lab.try_ask("POST", &format!("/api/waits/{wait}/answer"), "", &answer)?;
                // Its holder is being adopted: a moment later it can be reached.
                let early = reply.body["error"]["code"] == "agent_unreachable";
                assert!(early || reply.status == 202, "{} {}", reply.status, reply.body);
                (!early).then_some(())
            });
            insist_on_records(lab, id, "run.completed", 1);
        },
        after: |lab, id, place| {
            check(lab, id, place, 1);
            for kind in ["run.waiting", "token.minted", "token.consumed", "run.resumed", "run.started"] {
                assert_eq!(lab.count(id, kind), 1, "{place}: {kind}");
            }
            let answers = lab.record().iter().filter(|line| line.contains("allow_once")).count();
            assert_eq!((answers, lab.said(id).as_str()), (1, "thanks"), "{place}");
        },
    });
}

// I1, I5, I13
#[test]
fn dying_anywhere_while_a_message_waits_for_its_turn_and_the_next_is_cancelled() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("barrier here\nsay one");
            lab.reach("here");
            id
        },
        act: |lab, id| {
            let messages = format!("/api/sessions/{id}/messages");
            insist_on_post(lab, &messages, "two", &json!({"content": "say two"}));
            lab.pass("here");
            insist_on_records(lab, id, "run.completed", 2);
            insist_on_post(lab, &messages, "three", &json!({"content": "barrier there\nsay never"}));
            insist(lab, "the third turn", |lab| lab.is_reached("there").then_some(()));
            insist(lab, "the cancel", |lab| {
                let path = format!("/api/sessions/{id}/cancel");
                let reply = lab.try_ask("POST", &path, "", &Value::Null)?;
                assert!(matches!(reply.status, 202 | 409), "{} {}", reply.status, reply.body);
                Some(())
            });
            insist_on_records(lab, id, "run.cancelled", 1);
        },
        after: |lab, id, place| {
            check(lab, id, place, 1);
            let ends = ["run.started", "run.completed", "run.cancelled", "message.user"];
            assert_eq!(ends.map(|kind| lab.count(id, kind)), [3, 2, 1, 3], "{place}");
            let given = ["say one", "say two", "say never"];
            assert_eq!(given.map(|words| lab.prompted(words)), [1, 1, 1], "{place}");
            assert!(!lab.said(id).contains("never"), "{place}");
        },
    });
}

// I5, I6, I14
#[test]
fn dying_anywhere_while_a_dead_agent_is_replaced() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("say before\nbarrier here\nsay after");
            lab.reach("here");
            id
        },
        act: |lab, id| {
            let agent = Identity::of(lab.agents()[0]).expect("it lives");
            signal_exactly(&agent, Signal::KILL).expect("killed");
            insist_on_records(lab, id, "run.completed", 1);
        },
        after: |lab, id, place| {
            check(lab, id, place, 2);
            let kinds = ["run.started", "run.interrupted", "run.completed"];
            assert_eq!(kinds.map(|kind| lab.count(id, kind)), [2, 1, 1], "{place}");
            // The end of a launch that came to nothing is recorded too.
            assert_eq!(lab.count(id, "agent.exited"), lab.count(id, "agent.launching") - 1, "{place}");
            assert_eq!(lab.prompted("barrier here"), 1, "{place}");
        },
    });
}

// I13, I14
#[test]
fn dying_anywhere_while_a_session_is_removed_with_its_agent() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("barrier here\nsay never");
            lab.reach("here");
            id
        },
        act: |lab, id| {
            let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
            insist(lab, "the removal", |lab| {
                let path = format!("/api/sessions/{id}?force=1");
                let reply = lab.try_ask("DELETE", &path, "", &Value::Null)?;
                matches!(reply.status, 204 | 404).then_some(())
            });
            insist(lab, "the files to go", |_| (!log.exists()).then_some(()));
        },
        after: |lab, id, place| {
            assert_eq!(lab.ask("GET", &format!("/api/sessions/{id}"), &Value::Null).status, 404, "{place}");
            assert_eq!((lab.living_agents().len(), lab.living_holders().len()), (0, 0), "{place}");
        },
    });
}

// I1, I7, I13
#[test]
fn dying_anywhere_while_a_message_comes_instead_of_an_answer() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("ask may I?\nsay never");
            lab.wait_status(&id, "waiting");
            id
        },
        act: |lab, id| {
            let message = json!({"content": "say instead"});
            insist_on_post(lab, &format!("/api/sessions/{id}/messages"), "instead", &message);
            insist_on_records(lab, id, "run.completed", 1);
        },
        after: |lab, id, place| {
            check(lab, id, place, 1);
            let kinds = ["run.started", "run.cancelled", "run.completed", "run.interrupted", "message.user"];
            assert_eq!(kinds.map(|kind| lab.count(id, kind)), [2, 1, 1, 0, 2], "{place}");
            let kinds = ["run.cancel_requested", "token.revoked", "run.resumed", "token.consumed"];
            assert_eq!(kinds.map(|kind| lab.count(id, kind)), [1, 1, 1, 0], "{place}");
            assert_eq!((lab.said(id).as_str(), lab.prompted("say instead")), ("instead", 1), "{place}");
        },
    });
}

// I7, I13: the time is over when the daemon comes, and whoever dies over it leaves it to the next.
#[test]
fn dying_anywhere_while_a_question_is_not_answered_in_time() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let mut body = lab.session("ask may I?\nsay never");
            body["wait_timeout_s"] = json!(600);
            let id = lab.create(&body);
            lab.wait_status(&id, "waiting");
            lab.set_millis("REKINDLE_SLEPT", 601_000);
            id
        },
        act: |lab, id| {
            insist(lab, "the end of its time", |lab| {
                let session = lab.try_get(&format!("/api/sessions/{id}"))?;
                let state = (session["status"].as_str()?, session["run"]["state"].as_str()?);
                match state {
                    // It is known before it is recorded, and the agent is told before it has answered.
                    ("interrupted_waiting", "waiting") | ("running", "cancelling") => None,
                    ("interrupted_waiting", "interrupted") => Some(()),
                    other => panic!("{other:?} is no state on the way"),
                }
            });
        },
        after: |lab, id, place| {
            check(lab, id, place, 1);
            let kinds = ["run.started", "run.interrupted", "run.completed", "run.cancelled"];
            assert_eq!(kinds.map(|kind| lab.count(id, kind)), [1, 1, 0, 0], "{place}: {:?}", lab.kinds(id));
            let kinds = ["run.cancel_requested", "run.resumed", "token.revoked", "token.consumed"];
            assert_eq!(kinds.map(|kind| lab.count(id, kind)), [1, 1, 1, 0], "{place}: {:?}", lab.kinds(id));
            let cut = lab.log(id).into_iter().find(|record| record["kind"] == "run.interrupted");
            assert_eq!(cut.expect("cut")["reason"], "wait_timeout", "{place}");
            // The agent was told once that nobody answers, and asks no more.
            let told = |words: &str| lab.record().iter().filter(|line| line.contains(words)).count();
            assert_eq!((told("\"outcome\":\"cancelled\""), told("session/cancel")), (1, 1), "{place}");
            assert_eq!(
                (lab.status(id).as_str(), lab.said(id).as_str()),
                ("interrupted_waiting", ""),
                "{place}"
            );
            let waits = lab.get("/api/waits")["waits"].clone();
            let open = waits.as_array().expect("a list").iter().any(|wait| wait["state"] == "open");
            assert!(!open, "{place}: {waits}");
        },
    });
}

// I13, I14: a cancel that the agent does not heed ends it, and once.
#[test]
fn dying_anywhere_while_a_deaf_agent_is_cancelled() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |lab| {
            lab.start();
            let id = lab.run("say begun\nhang deaf");
            wait_for("the turn to begin", || (lab.prompted("hang deaf") == 1).then_some(()));
            lab.set("REKINDLE_CANCELLED_WITHIN", 100);
            id
        },
        act: |lab, id| {
            insist(lab, "the cancel", |lab| {
                let reply = lab.try_ask("POST", &format!("/api/sessions/{id}/cancel"), "", &Value::Null)?;
                assert!(matches!(reply.status, 202 | 409), "{} {}", reply.status, reply.body);
                Some(())
            });
            insist_on_records(lab, id, "agent.exited", 1);
        },
        after: |lab, id, place| {
            let kinds = ["run.started", "run.cancelled", "run.interrupted", "agent.exited", "agent.started"];
            assert_eq!(
                kinds.map(|kind| lab.count(id, kind)),
                [1, 1, 0, 1, 1],
                "{place}: {:?}",
                lab.kinds(id)
            );
            assert_eq!((lab.agents().len(), lab.living_agents().len()), (1, 0), "{place}");
            wait_for("its holder to end", || lab.living_holders().is_empty().then_some(()));
        },
    });
}

// I4, I5: a command that has its prompt on its standard input, which ends behind it.
#[test]
fn dying_anywhere_while_a_command_has_its_turn() {
    die_everywhere(&Scenario {
        at_least: 10,
        before: |_| String::new(),
        act: |lab, _| {
            let given = lab.path("given").display().to_string();
            let command = ["sh", "-c", &format!("echo begun >> '{given}'; cat >> '{given}'; echo done")];
            let agent = json!({"profile": "exec", "command": command});
            let body = json!({"working_dir": lab.path("work"), "agent": agent, "prompt": "some words"});
            let made = insist_on_post(lab, "/api/sessions", "create", &body);
            let id = made["id"].as_str().expect("an id").to_owned();
            insist_on_records(lab, &id, "run.completed", 1);
        },
        after: |lab, _, place| {
            let list = lab.get("/api/sessions")["sessions"].clone();
            let id = list[0]["id"].as_str().expect("an id").to_owned();
            let kinds = ["run.started", "run.completed", "run.interrupted", "agent.started"];
            assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 1, 0, 1], "{place}");
            let given = std::fs::read_to_string(lab.path("given")).expect("it was begun");
            assert_eq!(given.trim(), "begun\nsome words", "{place}");
            assert_eq!(lab.said(&id).trim(), "done", "{place}");
            wait_for("its holder to end", || lab.living_holders().is_empty().then_some(()));
        },
    });
}
