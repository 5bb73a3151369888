//! The daemon dies at every named place of start, answer, cancel, resume and deletion: afterwards the session is in one of
//! the two neighbouring states, never in a third.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

fn only_session(lab: &Lab) -> Option<String> {
    let list = lab.get("/api/sessions");
    let sessions = list["sessions"].as_array().expect("a list").clone();
    assert!(sessions.len() <= 1, "{sessions:?}");
    sessions.first().map(|session| session["id"].as_str().expect("an id").to_owned())
}

// I1, I5
#[test]
fn dying_while_a_session_is_made_leaves_none_or_one_that_goes_on() {
    for (place, there) in [
        ("create.before_record", false),
        ("create.after_record", true),
        ("start.before_launch", true),
        ("start.after_launch", true),
    ] {
        let mut lab = Lab::without_daemon();
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        let _ = lab.try_ask("POST", "/api/sessions", "", &lab.session("say hello"));
        lab.died();
        lab.start();
        let found = only_session(&lab);
        assert_eq!(found.is_some(), there, "{place}");
        if let Some(id) = found {
            assert_eq!(lab.wait_end(&id), "completed", "{place}");
            assert_eq!(lab.prompted("say hello"), 1, "{place}");
            assert_eq!(lab.count(&id, "run.started"), 1, "{place}");
        }
    }
}

/// Every place between a session that has a prompt and its agent at work.
const STARTING: [&str; 14] = [
    "start.before_launch",
    "launch.after_prepare",
    "launch.after_record",
    "launch.after_spawn",
    "adopt.after_connect",
    "adopt.after_start",
    "adopt.before_started",
    "live.append.before",
    "live.append.after",
    "adopt.after_started",
    "adopt.before_sending",
    "adopt.after_sending",
    "start.after_launch",
    "live.send.before",
];

// I4, I5, I6: one run, one prompt, one agent, wherever the daemon dies on the way to it.
#[test]
fn dying_between_any_two_steps_of_a_start_leaves_one_agent_that_was_asked_once() {
    for place in STARTING {
        let mut lab = Lab::without_daemon();
        lab.start_to_die(place);
        let _ = lab.try_ask("POST", "/api/sessions", "", &lab.session("say hello"));
        lab.died();
        lab.start();
        let id = only_session(&lab).expect("it was recorded");
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let kinds = ["run.started", "run.interrupted", "run.completed", "agent.started"];
        assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 0, 1, 1], "{place}: {:?}", lab.kinds(&id));
        assert_eq!((lab.prompted("say hello"), lab.agents().len()), (1, 1), "{place}");
        assert_eq!((lab.living_agents().len(), lab.living_holders().len()), (1, 1), "{place}");
        // The one that lives is the one that the log names.
        let launched = lab.log(&id).into_iter().rfind(|record| record["kind"] == "agent.launching");
        let holders = lab.get("/api/holders")["holders"].as_array().expect("a list").clone();
        let living: Vec<&Value> = holders.iter().filter(|holder| holder["state"] == "lives").collect();
        assert_eq!(living[0]["id"], launched.expect("it was launched")["holder_id"], "{place}");
    }
}

// I4, I14: taking over is as good as never begun until it is done.
#[test]
fn dying_between_any_two_steps_of_an_adoption_disturbs_nobody() {
    for place in [
        "adopt.after_connect",
        "live.append.before",
        "live.append.after",
        "adopt.before_sending",
        "adopt.after_sending",
    ] {
        let mut lab = Lab::new();
        let id = lab.run("barrier here\nsay hello");
        lab.reach("here");
        let agents = lab.living_agents();
        lab.kill();
        lab.start_to_die(place);
        lab.died();
        lab.start();
        lab.pass("here");
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let kinds = ["run.started", "run.interrupted", "run.completed", "agent.started"];
        assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 0, 1, 1], "{place}");
        assert_eq!((lab.living_agents(), lab.agents().len()), (agents, 1), "{place}");
        assert_eq!((lab.prompted("barrier here"), lab.said(&id).as_str()), (1, "hello"), "{place}");
    }
}

// I1: what is said to a session, and where the daemon dies over it; afterwards it is there or it is not.
#[test]
fn dying_while_a_message_is_taken_leaves_it_unsaid_or_answered_once() {
    for (busy, place, there) in [
        (false, "append.before", false),
        (false, "append.after", true),
        (false, "append.told", true),
        (false, "live.append.before", true),
        (false, "live.send.before", true),
        (false, "live.send.after", true),
        (true, "append.before", false),
        (true, "append.after", true),
        (true, "append.told", true),
        // Its turn comes: the end of the one before is captured, its own is recorded as begun, captured, queued to the agent, sent.
        (true, "append.before#2", true),
        (true, "append.after#2", true),
        (true, "append.before#3", true),
        (true, "append.after#3", true),
        (true, "append.before#4", true),
        (true, "append.after#4", true),
        (true, "live.send.before", true),
        (true, "live.send.after", true),
    ] {
        let mut lab = Lab::new();
        let id = lab.run("say one\nbarrier here");
        lab.reach("here");
        if !busy {
            lab.pass("here");
            lab.wait_end(&id);
            // Whoever comes next has nothing to record but the message.
            wait_for("its checkpoints", || (lab.count(&id, "run.checkpoint") == 2).then_some(()));
        }
        lab.kill();
        lab.start_to_die(place);
        wait_adoption(&lab);
        let said = json!({"content": "say two"});
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/messages"), "", &said);
        lab.pass("here");
        lab.died();
        lab.start();
        let runs = if there { 2 } else { 1 };
        wait_for("the turns to end", || (lab.count(&id, "run.completed") == runs).then_some(()));
        let case = format!("busy {busy}, {place}: {:?}", lab.kinds(&id));
        assert_eq!((lab.count(&id, "message.user"), lab.count(&id, "run.started")), (runs, runs), "{case}");
        assert_eq!((lab.prompted("say two"), lab.agents().len()), (runs - 1, 1), "{case}");
    }
}

/// Waits until the second daemon commands the only agent.
fn wait_adoption(lab: &Lab) {
    wait_for("the adoption", || (lab.get("/api/holders")["holders"][0]["epoch"] == 2).then_some(()));
}

// I1, I13
#[test]
fn dying_while_a_session_is_closed_leaves_it_open_or_ends_its_agent() {
    for (place, there) in [
        ("append.before", false),
        ("append.after", true),
        ("live.stop.before", true),
        ("live.stop.after", true),
    ] {
        let mut lab = Lab::new();
        let id = lab.run("say one");
        lab.wait_end(&id);
        lab.kill();
        lab.start_to_die(place);
        wait_adoption(&lab);
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/close"), "", &Value::Null);
        lab.died();
        lab.start();
        let said = lab.ask("POST", &format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
        if there {
            assert_eq!(
                (said.status, &said.body["error"]["code"]),
                (409, &json!("session_closed")),
                "{place}"
            );
            wait_for("the agent to go", || lab.living_holders().is_empty().then_some(()));
            wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
        } else {
            wait_for("the answer", || lab.said(&id).contains("two").then_some(()));
            assert_eq!(lab.agents().len(), 1, "{place}");
        }
    }
}

// I1, I7: a token that nobody was told is worth nothing, and one that was told is good.
#[test]
fn dying_while_a_token_is_minted_leaves_the_wait_as_it_was() {
    for (place, minted) in [("append.before", 1), ("append.after", 2)] {
        let mut lab = Lab::new();
        let id = lab.run("ask may I?\nsay thanks");
        let wait = wait_for("a wait", || lab.get("/api/waits")["waits"].get(0).cloned());
        let wait = format!("/api/waits/{}", wait["wait_id"].as_str().expect("an id"));
        lab.kill();
        lab.start_to_die(place);
        wait_adoption(&lab);
        assert!(lab.try_ask("POST", &format!("{wait}/token"), "", &Value::Null).is_none(), "{place}");
        lab.died();
        lab.start();
        lab.wait_status(&id, "waiting");
        assert_eq!(lab.count(&id, "token.minted"), minted, "{place}");
        let token = lab.post(&format!("{wait}/token"), &Value::Null)["token"].clone();
        let answer = json!({"option": "allow_once", "token": token});
        wait_for("the answer", || {
            (lab.ask("POST", &format!("{wait}/answer"), &answer).status == 202).then_some(())
        });
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let kinds = ["token.consumed", "token.revoked", "run.resumed"];
        assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, minted, 1], "{place}");
    }
}

// I1: a person's word counts once it is on disk, and not before.
#[test]
fn dying_while_a_person_resumes_leaves_it_held_or_continued_once() {
    for (place, there) in [("resume.before_record", false), ("resume.after_record", true)] {
        let mut lab = Lab::new();
        let mut body = lab.session("say before\nbarrier here\nsay after");
        body["resume"] = json!("ask");
        let id = lab.create(&body);
        lab.reach("here");
        let agent = rekindle_holder::identity::Identity::of(lab.agents()[0]).expect("it lives");
        rekindle_holder::tree::signal_exactly(&agent, rustix::process::Signal::KILL).expect("killed");
        lab.wait_status(&id, "interrupted_agent");
        lab.kill();
        lab.start_to_die(place);
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/resume"), "", &json!({}));
        lab.died();
        lab.start();
        if there {
            assert_eq!(lab.wait_end(&id), "completed", "{place}");
        } else {
            wait_for("why it is held", || lab.show(&id)["held"].as_str()?.contains("decision").then_some(()));
            assert_eq!(lab.status(&id), "interrupted_agent", "{place}");
        }
        let runs = if there { 2 } else { 1 };
        assert_eq!((lab.count(&id, "run.started"), lab.count(&id, "run.interrupted")), (runs, 1), "{place}");
    }
}

// I5, I7
#[test]
fn dying_while_a_question_is_answered_leaves_it_open_or_answered_once() {
    for place in ["answer.before_record", "live.answer.after_record"] {
        let mut lab = Lab::new();
        let id = lab.run("ask may I?\nsay thanks");
        let wait = wait_for("a wait", || lab.get("/api/waits")["waits"].get(0).cloned());
        let path = format!("/api/waits/{}/answer", wait["wait_id"].as_str().expect("an id"));
        lab.kill();
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        lab.wait_status(&id, "waiting");
        let _ = lab.try_ask("POST", &path, "", &json!({"option": "allow_once"}));
        lab.died();
        lab.start();
        lab.wait_status(&id, if place == "answer.before_record" { "waiting" } else { "idle" });
        let _ = lab.ask("POST", &path, &json!({"option": "allow_once"}));
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        assert_eq!(lab.count(&id, "token.consumed"), 1, "{place}");
        assert!(lab.said(&id).contains("thanks"), "{place}");
    }
}

// I13
#[test]
fn dying_while_a_run_is_cancelled_leaves_it_running_or_cancelled_for_good() {
    for place in ["cancel.before_record", "live.cancel.after_record"] {
        let mut lab = Lab::new();
        let id = lab.run("barrier here\nsay after");
        lab.reach("here");
        lab.kill();
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        wait_for("the adoption", || (lab.count(&id, "run.adopted") == 1).then_some(()));
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/cancel"), "", &Value::Null);
        lab.died();
        lab.start();
        if place == "cancel.before_record" {
            assert_eq!(lab.status(&id), "running");
            lab.pass("here");
            assert_eq!(lab.wait_end(&id), "completed");
        } else {
            assert_eq!(lab.wait_end(&id), "cancelled", "{place}");
            lab.restart();
            assert_eq!((lab.status(&id).as_str(), lab.count(&id, "run.started")), ("idle", 1));
        }
    }
}

// I5
#[test]
fn dying_while_an_interrupted_run_is_continued_continues_it_once() {
    for place in ["harvest.before_record", "resume.before_start", "resume.after_start"] {
        let mut lab = Lab::new();
        let id = lab.run("say before\nbarrier here\nsay after");
        lab.reach("here");
        let agent = rekindle_holder::identity::Identity::of(lab.agents()[0]).expect("it lives");
        lab.kill();
        rekindle_holder::tree::signal_exactly(&agent, rustix::process::Signal::KILL).expect("killed");
        wait_for("the agent's end", || {
            matches!(agent.presence(), Ok(rekindle_holder::identity::Presence::Gone)).then_some(())
        });
        let command = lab.rekindle(&["serve", "--background"]).env("REKINDLE_CRASH_AT", place).output();
        assert!(!command.expect("it ran").status.success(), "it dies at {place}");
        lab.start();
        wait_for("the continuation", || (lab.count(&id, "run.started") == 2).then_some(()));
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "run.started")), (1, 2), "{place}");
        assert_eq!(lab.prompted("barrier here"), 1, "{place}");
    }
}

// I14
#[test]
fn dying_while_a_session_is_removed_removes_it_in_the_end() {
    for place in ["delete.before_record", "delete.after_record", "delete.before_remove"] {
        let mut lab = Lab::new();
        let id = lab.run("say hello");
        lab.wait_end(&id);
        lab.kill();
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        let _ = lab.try_ask("DELETE", &format!("/api/sessions/{id}"), "", &Value::Null);
        lab.died();
        lab.start();
        let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
        if place == "delete.before_record" {
            assert_eq!(lab.status(&id), "idle");
        } else {
            wait_for("the files to go", || (!log.exists()).then_some(()));
            assert_eq!(lab.ask("GET", &format!("/api/sessions/{id}"), &Value::Null).status, 404);
        }
    }
}
