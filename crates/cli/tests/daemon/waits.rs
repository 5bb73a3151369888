//! Questions that outlive daemons, and answers that count once.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::lab::{Lab, holds, wait_for};

fn open_wait(lab: &Lab) -> Value {
    wait_for("a wait", || lab.get("/api/waits")["waits"].get(0).cloned())
}

fn id_of(wait: &Value) -> String {
    wait["wait_id"].as_str().expect("an id").to_owned()
}

// I7
#[test]
fn a_permission_outlives_the_daemon_and_is_answered_once() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?\nsay thank you");
    let wait = open_wait(&lab);
    lab.restart();
    let again = open_wait(&lab);
    assert_eq!(wait, again, "the same wait, the same question");
    lab.wait_status(&id, "waiting");
    let path = format!("/api/waits/{}/answer", id_of(&wait));
    let first = lab.post(&path, &json!({"option": "allow_once"}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.post(&path, &json!({"option": "allow_once"})), first, "the same answer again");
    let other = lab.ask("POST", &path, &json!({"option": "reject_once"}));
    assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("token_consumed")));
    assert!(lab.said(&id).contains("thank you"));
    assert_eq!(lab.count(&id, "token.consumed"), 1);
}

// I7: a hundred at once.
#[test]
fn of_a_hundred_who_answer_at_once_one_wins() {
    let lab = Lab::new();
    let id = lab.run("ask may I?\nsay done");
    let wait = id_of(&open_wait(&lab));
    let token = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null);
    let token = token["token"].as_str().expect("a token").to_owned();
    let answer = |n: usize| {
        let option = if n.is_multiple_of(2) { "allow_once" } else { "reject_once" };
        let body = json!({"option": option, "token": token});
        lab.ask("POST", &format!("/api/waits/{wait}/answer"), &body).status
    };
    let answer = &answer;
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..100).map(|n| scope.spawn(move || answer(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("answered")).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 202 | 409)), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 50, "those who said the same");
    assert_eq!(lab.count(&id, "token.consumed"), 1);
    assert_eq!(lab.count(&id, "run.resumed"), 1);
    lab.wait_end(&id);
    let secret = token.split_once('.').expect("a secret").1;
    assert!(!holds(&lab.home(), secret), "a secret is on disk");
    assert!(!lab.daemon_log().contains(secret), "a secret is in the log");
}

#[test]
fn wrong_tokens_are_refused_each_in_its_way() {
    let lab = Lab::new();
    let id = lab.run("ask one?\nask two?");
    let wait = id_of(&open_wait(&lab));
    let path = format!("/api/waits/{wait}/answer");
    let say = |token: &str| {
        let reply = lab.ask("POST", &path, &json!({"option": "allow_once", "token": token}));
        (reply.status, reply.body["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(say("nonsense"), (401, "token_unknown".into()));
    let token = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null);
    let token = token["token"].as_str().expect("a token").to_owned();
    let wrong = format!("{}.{}", token.split_once('.').expect("a secret").0, "0".repeat(64));
    assert_eq!(say(&wrong), (401, "token_unknown".into()));
    lab.post(&path, &json!({"option": "allow_once"}));
    let second = wait_for("the second question", || {
        let waits = lab.get("/api/waits")["waits"].clone();
        waits.as_array()?.iter().map(id_of).find(|one| *one != wait)
    });
    let reply = lab.ask(
        "POST",
        &format!("/api/waits/{second}/answer"),
        &json!({"option": "allow_once", "token": token}),
    );
    assert_eq!((reply.status, &reply.body["error"]["code"]), (403, &json!("token_scope")));
    assert_eq!(lab.ask("POST", "/api/waits/wait_1/answer", &json!({"text": "x"})).status, 404);
    lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
    assert_eq!(lab.wait_end(&id), "cancelled");
    let late = lab.ask("POST", &format!("/api/waits/{second}/answer"), &json!({"option": "allow_once"}));
    assert!(matches!(late.status, 404 | 409 | 410), "{}", late.body);
}

#[test]
fn a_token_of_another_session_is_known_to_be_for_something_else() {
    let mut lab = Lab::new();
    let (mine, other) = (lab.run("ask mine?"), lab.run("ask other?"));
    let wait_of = |lab: &Lab, id: &str| id_of(&lab.wait_status(id, "waiting")["wait"]);
    let (mine_wait, other_wait) = (wait_of(&lab, &mine), wait_of(&lab, &other));
    let minted = lab.post(&format!("/api/waits/{other_wait}/token"), &Value::Null);
    let token = minted["token"].as_str().expect("a token").to_owned();
    let forged = format!("{}.{}", token.split_once('.').expect("a secret").0, "0".repeat(64));
    // Also when its session was only listed since the start.
    for _ in 0..2 {
        for (token, refusal) in [(&token, (403, "token_scope")), (&forged, (401, "token_unknown"))] {
            let answer = json!({"option": "allow_once"});
            let resume = json!({"token": token, "answer": answer});
            let answer = json!({"option": "allow_once", "token": token});
            for reply in [
                lab.ask("POST", &format!("/api/sessions/{mine}/resume"), &resume),
                lab.ask("POST", &format!("/api/waits/{mine_wait}/answer"), &answer),
            ] {
                let told = (reply.status, reply.body["error"]["code"].as_str().unwrap_or_default());
                assert_eq!(told, refusal, "{}", reply.body);
            }
        }
        lab.restart();
    }
    for id in [&mine, &other] {
        assert_eq!((wait_of(&lab, id).is_empty(), lab.count(id, "token.consumed")), (false, 0));
    }
    let resume = json!({"token": token, "answer": {"option": "allow_once"}});
    wait_for("the right one", || {
        (lab.ask("POST", &format!("/api/sessions/{other}/resume"), &resume).status == 202).then_some(())
    });
    assert_eq!(lab.wait_end(&other), "completed");
}

// I13
#[test]
fn a_message_into_a_wait_cancels_what_is_waited_for_and_comes_next() {
    let lab = Lab::new();
    let id = lab.run("ask may I?\nsay never");
    open_wait(&lab);
    let taken = lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say instead"}));
    assert_eq!(taken["queued"], true);
    wait_for("the second run", || (lab.count(&id, "run.started") == 2).then_some(()));
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(lab.said(&id).contains("instead") && !lab.said(&id).contains("never"));
}

#[test]
fn a_wait_whose_agent_died_is_void_and_its_answer_becomes_a_message_once() {
    let lab = Lab::new();
    let mut body = lab.session("ask may I?\nsay thanks");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    let wait = open_wait(&lab);
    let agent = rekindle_holder::identity::Identity::of(lab.agents()[0]).expect("it lives");
    rekindle_holder::tree::signal_exactly(&agent, rustix::process::Signal::KILL).expect("killed");
    lab.wait_status(&id, "interrupted_waiting");
    let void = wait_for("the void wait", || lab.get("/api/waits")["waits"].get(0).cloned());
    assert_eq!((void["state"].as_str(), &void["wait_id"]), (Some("void"), &wait["wait_id"]));
    let path = format!("/api/waits/{}/answer", id_of(&wait));
    let answered = lab.post(&path, &json!({"option": "allow_once"}));
    assert!(answered["run_id"].is_string());
    assert_eq!(lab.wait_end(&id), "completed");
    // The same answer again is known; another one comes too late.
    assert_eq!(lab.post(&path, &json!({"option": "allow_once"}))["run_id"], answered["run_id"]);
    let reply = lab.ask("POST", &path, &json!({"option": "reject_once"}));
    assert!(matches!(reply.status, 404 | 409 | 410), "{} {}", reply.status, reply.body);
    assert_eq!(lab.count(&id, "message.user"), 2);
}

#[test]
fn a_policy_answers_for_everyone() {
    let lab = Lab::new();
    for (policy, said) in [("allow", true), ("deny", false)] {
        let mut body = lab.session("ask may I?\nsay allowed");
        body["permissions"] = json!(policy);
        let id = lab.create(&body);
        lab.wait_end(&id);
        assert_eq!(lab.said(&id).contains("allowed"), said, "{policy}: {}", lab.said(&id));
    }
}

#[test]
fn a_question_that_nobody_answers_in_time_interrupts_the_run_and_is_not_resumed() {
    let mut lab = Lab::new();
    let mut body = lab.session("ask may I?\nsay never");
    body["wait_timeout_s"] = json!(1);
    let id = lab.create(&body);
    let wait = open_wait(&lab);
    assert!(wait["deadline_at"].is_string());
    // The time goes by while nobody is there, too.
    lab.restart();
    lab.wait_status(&id, "interrupted_waiting");
    wait_for("the end", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
    let log = lab.log(&id);
    let cut = log.iter().find(|record| record["kind"] == "run.interrupted").expect("interrupted");
    assert_eq!(cut["reason"], "wait_timeout");
    wait_for("why it is held", || lab.show(&id)["held"].as_str()?.contains("in time").then_some(()));
    let late =
        lab.ask("POST", &format!("/api/waits/{}/answer", id_of(&wait)), &json!({"option": "allow_once"}));
    assert!(late.status >= 400 || late.body["run_id"].is_string(), "{}", late.body);
    assert_eq!(lab.count(&id, "token.consumed"), 0);
}

#[test]
fn a_mode_and_a_model_are_asked_for_before_the_prompt() {
    let lab = Lab::new();
    let mut body = lab.session("ask may I?\nsay done");
    body["mode"] = json!("yolo");
    body["model"] = json!("demo-large");
    let id = lab.create(&body);
    assert_eq!(lab.wait_end(&id), "completed", "in this mode nobody is asked");
    let record = lab.record().join("\n");
    let at = |words: &str| record.find(words).unwrap_or_else(|| panic!("{words} is not in {record}"));
    assert!(at("session/set_mode") < at("session/prompt") && at("demo-large") < at("session/prompt"));
}

// I7: an answer is the same answer for ever, and one that comes just when its agent is found dead is taken all the same.
#[test]
fn answers_are_known_again_after_a_restart_and_none_falls_between() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?\nsay done");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let path = format!("/api/waits/{wait}/answer");
    let first = lab.post(&path, &json!({"option": "allow_once"}));
    lab.wait_end(&id);
    lab.post(&format!("/api/sessions/{id}/close"), &json!({}));
    wait_for("the agent's end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.restart();
    assert_eq!(lab.post(&path, &json!({"option": "allow_once"})), first);
    let other = lab.ask("POST", &path, &json!({"option": "reject_once"}));
    assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("token_consumed")));

    let mut body = lab.session("ask really?\nsay done");
    body["resume"] = json!("never");
    let id = lab.create(&body);
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    lab.kill();
    lab.kill_holders();
    lab.start();
    let reply = lab.ask("POST", &format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(reply.status, 202, "{}", reply.body);
    wait_for("the message", || (lab.prompted("really?") >= 2).then_some(()));
    let asked =
        lab.record().into_iter().filter(|line| line.contains("You were interrupted while you waited"));
    assert!(asked.count() >= 1);
}

/// Ends those who write, also if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// I3: the number that is answered is that of the message's own record, whatever else is recorded at the same time.
#[test]
fn a_message_into_a_wait_is_told_its_own_number_while_others_write() {
    let lab = Lab::new();
    let id = lab.run("ask may I?");
    let path = format!("/api/sessions/{id}");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (lab, done, path) = (&lab, &done, &path);
            scope.spawn(move || {
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    lab.ask("PATCH", path, &json!({"title": format!("{writer} {round}")}));
                }
            });
        }
        let end = End(&done);
        let taken: Vec<Option<Value>> = (0..10)
            .map(|round| {
                wait_for("a question", || (!lab.try_get(&path)?["wait"].is_null()).then_some(()));
                // The session changes too quickly now and then, and says so.
                (0..100).find_map(|_| {
                    let body = json!({"content": format!("ask again {round}?")});
                    let reply = lab.ask("POST", &format!("{path}/messages"), &body);
                    (reply.status == 202).then_some(reply.body)
                })
            })
            .collect();
        drop(end);
        for taken in taken {
            let taken = taken.expect("taken at last");
            let before = taken["seq"].as_u64().expect("a number") - 1;
            let record = lab.get(&format!("{path}/log?after={before}&limit=1"))["records"][0].clone();
            assert_eq!(record["message_id"], taken["message_id"], "{taken}: {record}");
        }
    });
}
