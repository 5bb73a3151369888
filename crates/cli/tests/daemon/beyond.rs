//! What someone asks for while something else is still under way: a cancel behind a cancel, a message behind an
//! interruption, an answer to a question that nobody waits for any more. Each is recorded before it is answered, and is
//! done once.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kills::{holder_pid, kill};
use crate::lab::{Lab, Reply, wait_for};

/// Seconds that a question has: enough for a slow machine to stop the agent in.
const TIME: u64 = 4;

fn stop(pid: i32) -> Identity {
    let process = Identity::of(pid).expect("it lives");
    signal_exactly(&process, Signal::STOP).expect("stopped");
    process
}

fn wait_id(lab: &Lab, id: &str) -> String {
    lab.wait_status(id, "waiting")["waits"][0]["wait_id"].as_str().expect("a wait").to_owned()
}

fn message(lab: &Lab, id: &str, text: &str) -> Reply {
    lab.ask("POST", &format!("/api/sessions/{id}/messages"), &json!({ "content": text }))
}

fn cancel(lab: &Lab, id: &str) -> Reply {
    lab.ask("POST", &format!("/api/sessions/{id}/cancel"), &Value::Null)
}

/// Returns why a session's runs were to be cancelled.
fn reasons(lab: &Lab, id: &str) -> Vec<String> {
    let asked = lab.log(id).into_iter().filter(|record| record["kind"] == "run.cancel_requested");
    asked.map(|record| record["why"].as_str().expect("a reason").to_owned()).collect()
}

/// Asks for the same thing from many sides at once.
fn at_once(lab: &Lab, path: &str, headers: &str, body: &Value) -> Vec<Reply> {
    std::thread::scope(|scope| {
        let ask = || lab.try_ask("POST", path, headers, body).expect("an answer");
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    })
}

// I1, I13
#[test]
fn a_cancel_behind_another_reason_to_cancel_is_recorded_and_nothing_of_the_queue_is_begun() {
    let lab = Lab::new();
    let id = lab.run("ask go?\nsay x");
    wait_id(&lab, &id);
    // It does not end its turn by itself, so that the cancel for the sake of the message stays open.
    let agent = stop(lab.agents()[0]);
    assert_eq!(message(&lab, &id, "write after.txt ran").status, 202);
    assert_eq!(cancel(&lab, &id).status, 202);
    assert_eq!(reasons(&lab, &id), ["new_message", "user"]);
    assert_eq!((lab.show(&id)["queued"].as_u64(), cancel(&lab, &id).status), (Some(0), 202));
    signal_exactly(&agent, Signal::CONT).expect("continued");
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!(cancel(&lab, &id).body["error"]["code"], "nothing_running");
    assert_eq!((lab.count(&id, "run.started"), lab.prompted("write after.txt")), (1, 0));
    assert!(!lab.path("work").join("after.txt").exists());
}

// I1, I13
#[test]
fn whoever_cancels_what_nobody_answered_in_time_is_heard() {
    let lab = Lab::new();
    let mut body = lab.session("ask go?");
    body["wait_timeout_s"] = json!(TIME);
    let id = lab.create(&body);
    wait_id(&lab, &id);
    let agent = stop(lab.agents()[0]);
    wait_for("the end of its time", || (reasons(&lab, &id) == ["wait_timeout"]).then_some(()));
    assert_eq!(cancel(&lab, &id).status, 202);
    assert_eq!(reasons(&lab, &id), ["wait_timeout", "user"]);
    signal_exactly(&agent, Signal::CONT).expect("continued");
    lab.wait_end(&id);
}

// I13
#[test]
fn while_everything_stops_nothing_begins() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_STOP_GRACE", 500);
    lab.start();
    let id = lab.run("ask go?\nsay x");
    wait_id(&lab, &id);
    let agent = stop(lab.agents()[0]);
    assert_eq!(message(&lab, &id, "write after.txt ran").status, 202);
    lab.ran(&["stop", "--all"]).exits(0);
    assert!(rekindle_holder::tree::await_end(&agent, crate::lab::PATIENCE).expect("looked"));
    assert!(lab.dead());
    lab.start();
    wait_for("rest", || (lab.status(&id) == "idle").then_some(()));
    assert_eq!((lab.count(&id, "agent.launching"), lab.prompted("write after.txt")), (1, 0));
    assert!(!lab.path("work").join("after.txt").exists());
}

// I13: a run may end, or another begin, while a cancel is on its way.
#[test]
fn a_cancel_that_races_with_an_end_is_taken_or_too_late_and_nothing_else() {
    let lab = Lab::new();
    let id = lab.run("say begin");
    lab.wait_end(&id);
    for round in 0..30 {
        message(&lab, &id, &format!("say {round}"));
        let replies: Vec<Reply> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..2).map(|_| scope.spawn(|| cancel(&lab, &id))).collect();
            callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
        });
        for reply in replies {
            let code = reply.body["error"]["code"].as_str();
            assert!(
                reply.status == 202 || code == Some("nothing_running"),
                "{}: {}",
                reply.status,
                reply.body
            );
        }
        lab.wait_end(&id);
    }
}

// Whoever speaks to a session that is held gets an answer, however many spoke before.
#[test]
fn a_message_after_an_interruption_has_the_queue_go_on() {
    let mut lab = Lab::new();
    let mut body = lab.session("say one\nbarrier here");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    assert_eq!(message(&lab, &id, "say A").body["queued"], true);
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_agent");
    // It is held, with a queue: whoever watches is told, and does not wait for ever.
    lab.ran(&["attach", &id]).exits(3).tells(&lab.hint(&format!("resume {id}")));
    lab.restart();
    assert_eq!((lab.status(&id).as_str(), lab.prompted("say A")), ("interrupted_agent", 0));
    assert_eq!(message(&lab, &id, "say B").status, 202);
    wait_for("both turns", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!(lab.said(&id), "oneAB");
    assert_eq!((lab.prompted("say A"), lab.prompted("say B")), (1, 1));
}

#[test]
fn a_question_that_nobody_answered_in_time_is_over_and_a_message_goes_on() {
    let lab = Lab::new();
    let mut body = lab.session("barrier here\nask go?");
    body["wait_timeout_s"] = json!(TIME);
    let id = lab.create(&body);
    lab.reach("here");
    assert_eq!(message(&lab, &id, "say queued").body["queued"], true);
    lab.pass("here");
    wait_id(&lab, &id);
    let agent = stop(lab.agents()[0]);
    wait_for("the end of its time", || (reasons(&lab, &id) == ["wait_timeout"]).then_some(()));
    kill(agent.pid);
    lab.wait_status(&id, "interrupted_waiting");
    wait_for("why it is held", || lab.show(&id)["held"].as_str()?.contains("send a message").then_some(()));
    let refused = lab.ask("POST", &format!("/api/sessions/{id}/resume"), &json!({}));
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("nothing_to_resume")));
    lab.ran(&["status", &id]).exits(0).shows(&lab.hint(&format!("send {id} TEXT continues")));
    assert_eq!(message(&lab, &id, "say later").status, 202);
    wait_for("both turns", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!(lab.said(&id), "queuedlater");
}

// I7: an answer to a dead agent's question becomes one message, before whatever was said meanwhile.
#[test]
fn of_many_answers_to_a_question_of_the_dead_one_becomes_a_message() {
    for queued in [false, true] {
        let lab = Lab::new();
        let mut body = lab.session("barrier here\nask may I?");
        body["resume"] = json!("ask");
        let id = lab.create(&body);
        lab.reach("here");
        if queued {
            assert_eq!(message(&lab, &id, "say queued").body["queued"], true);
        }
        lab.pass("here");
        let wait = wait_id(&lab, &id);
        kill(lab.agents()[0]);
        wait_for("the wait to be void", || (lab.show(&id)["waits"][0]["state"] == "void").then_some(()));
        lab.wait_status(&id, "interrupted_waiting");
        wait_for("its end", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
        let path = format!("/api/waits/{wait}/answer");
        let unfit = lab.ask("POST", &path, &json!({"option": "banana"}));
        assert_eq!(
            (unfit.status, &unfit.body["error"]["code"]),
            (409, &json!("answer_unfit")),
            "{}",
            unfit.body
        );
        let replies = at_once(&lab, &path, "", &json!({"option": "allow_once"}));
        // The same answer again is told what became of the first; another one is refused.
        let runs: Vec<&Value> = replies.iter().map(|reply| &reply.body["run_id"]).collect();
        assert!(runs.iter().all(|run| run.is_string() && *run == runs[0]), "{runs:?}");
        assert_eq!(lab.ask("POST", &path, &json!({"option": "reject_once"})).status, 409);
        let wanted = 1 + usize::from(queued);
        wait_for("its turn", || (lab.count(&id, "run.completed") == wanted).then_some(()));
        let given = |record: &Value| record["kind"] == "message.user" && record["wait_id"] == *wait;
        assert_eq!(lab.log(&id).iter().filter(|record| given(record)).count(), 1);
        assert_eq!(lab.count(&id, "run.started"), 1 + wanted);
    }
}

// I5
#[test]
fn of_many_messages_with_one_key_into_a_wait_one_is_taken() {
    let lab = Lab::new();
    let id = lab.run("ask may I?");
    wait_id(&lab, &id);
    let path = format!("/api/sessions/{id}/messages");
    let replies = at_once(&lab, &path, "Idempotency-Key: k1\r\n", &json!({"content": "say once"}));
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply.body["message_id"]).collect();
    assert!(ids.iter().all(|id| id.is_string() && *id == ids[0]), "{ids:?}");
    wait_for("its turn", || (lab.count(&id, "run.completed") == 1).then_some(()));
    assert_eq!((lab.count(&id, "message.user"), lab.prompted("say once")), (2, 1));
}

// I1, I7: what is in the log is answered as such, whoever cannot be reached just now.
#[test]
fn what_is_recorded_is_taken_although_the_holder_cannot_be_told() {
    let lab = Lab::new();
    let id = lab.run("ask go?\nsay end");
    let wait = wait_id(&lab, &id);
    let holder = stop(holder_pid(&lab));
    let answered = lab.ask("POST", &format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(answered.status, 202, "{}", answered.body);
    assert_eq!((lab.count(&id, "token.consumed"), lab.count(&id, "run.resumed")), (1, 1));
    signal_exactly(&holder, Signal::CONT).expect("continued");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.said(&id), "end");
    let answers =
        lab.record().iter().filter(|line| line.contains("\"optionId\"") && line.contains("result")).count();
    assert!(answers <= 1, "it was told once");
    let other = lab.run("ask again?");
    wait_id(&lab, &other);
    let holder = lab.show(&other)["evidence"]["holder"]["pid"].as_i64().expect("a process") as i32;
    let holder = stop(holder);
    assert_eq!(cancel(&lab, &other).status, 202);
    assert_eq!(reasons(&lab, &other), ["user"]);
    signal_exactly(&holder, Signal::CONT).expect("continued");
    assert_eq!(lab.wait_end(&other), "cancelled");
}
