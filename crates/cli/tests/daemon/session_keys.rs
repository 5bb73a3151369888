//! Sessions with a key: whoever asks for the same one gets the same session, whatever happened in between.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::lab::{Lab, Reply, wait_for};

fn keyed(lab: &Lab, prompt: &str) -> Value {
    let mut body = lab.session(prompt);
    body["key"] = json!("my-project");
    body
}

// I5: many at once make one session, and every one of their prompts is said once.
#[test]
fn of_many_who_ask_for_a_key_at_once_one_makes_the_session() {
    let mut lab = Lab::new();
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let ask = |n: usize| {
            let (lab, body) = (&lab, keyed(&lab, &format!("say word{n}")));
            scope.spawn(move || lab.ask("POST", "/api/sessions", &body))
        };
        let callers: Vec<_> = (0..8).map(ask).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    assert!(made == 1 && replies.iter().all(|reply| matches!(reply.status, 200 | 201)));
    let ids: HashSet<&str> = replies.iter().filter_map(|reply| reply.body["id"].as_str()).collect();
    assert_eq!(ids.len(), 1);
    let id = (*ids.iter().next().expect("an id")).to_owned();
    wait_for("all of them", || (lab.count(&id, "run.completed") == 8).then_some(()));
    for n in 0..8 {
        assert_eq!(lab.prompted(&format!("say word{n}\"")), 1, "{n}");
    }
    assert_eq!(lab.show(&id)["key"], "my-project");

    // The next daemon knows it too, and so does one whose caches are gone.
    lab.restart();
    assert_eq!(lab.post("/api/sessions", &keyed(&lab, "say again"))["id"], id.as_str());
    lab.kill();
    let _ = std::fs::remove_file(lab.home().join("sessions/index.json"));
    let _ = std::fs::remove_file(lab.home().join(format!("sessions/{id}.json")));
    lab.start();
    let mut body = keyed(&lab, "");
    body.as_object_mut().expect("an object").remove("prompt");
    let found = lab.post("/api/sessions", &body);
    assert_eq!((&found["id"], &found["message"]), (&json!(id), &Value::Null));

    // Another directory or agent is another session.
    let conflict = |change: &dyn Fn(&mut Value)| {
        let mut other = body.clone();
        change(&mut other);
        let reply = lab.ask("POST", "/api/sessions", &other);
        (reply.status, reply.body["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(conflict(&|body| body["working_dir"] = json!("/")), (409, "key_conflict".into()));
    assert_eq!(
        conflict(&|body| body["agent"] = json!({"profile": "exec", "command": ["true"]})),
        (409, "key_conflict".into())
    );
    assert_eq!(conflict(&|body| body["key"] = json!("a b")), (400, "invalid_key".into()));

    // A closed session has no key any more.
    wait_for("the last turn", || {
        lab.show(&id)["run"]["state"].as_str().filter(|one| *one == "completed").map(drop)
    });
    lab.post(&format!("/api/sessions/{id}/close"), &json!({}));
    let other = lab.ask("POST", "/api/sessions", &body);
    assert!(other.status == 201 && other.body["id"] != id.as_str(), "{}", other.body);
}

#[test]
fn a_session_that_was_interrupted_is_resumed_and_the_prompt_comes_behind() {
    let lab = Lab::new();
    let mut body = keyed(&lab, "say begun\nbarrier here\nsay done");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    lab.kill_holders();
    lab.wait_status(&id, "interrupted_startup");
    let reply = lab.ask("POST", "/api/sessions", &keyed(&lab, "say more"));
    assert_eq!((reply.status, &reply.body["id"]), (200, &json!(id)), "{}", reply.body);
    assert_eq!(reply.body["message"]["queued"], true, "{}", reply.body);
    wait_for("both turns", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!(lab.prompted("say more"), 1);
    let output = lab
        .rekindle(&["run", "--key", "my-project", "--profile", "acp", "say last", "--"])
        .args(lab.demo(&[]))
        .output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "last", "only what it was asked now");
    assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(1));
}
