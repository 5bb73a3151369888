//! Waits that programs open on a run that goes on, and tokens whose time runs out.

use serde_json::{Value, json};

use crate::lab::{Lab, Reply, wait_for};

/// Begins a run that stands at a barrier, and returns its session.
fn running(lab: &Lab) -> String {
    let id = lab.run("say before\nbarrier here\nsay after");
    lab.reach("here");
    id
}

fn open(lab: &Lab, id: &str, body: &Value) -> Reply {
    lab.ask("POST", &format!("/api/sessions/{id}/waits"), body)
}

fn opened(lab: &Lab, id: &str, body: &Value) -> String {
    let reply = open(lab, id, body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply.body["wait_id"].as_str().expect("an id").to_owned()
}

fn show(lab: &Lab, wait: &str) -> Value {
    lab.get(&format!("/api/waits/{wait}"))
}

// I7: it outlives the daemon, is answered once, and the agent knows nothing of it.
#[test]
fn a_program_waits_for_an_answer_and_the_agent_works_on() {
    let mut lab = Lab::new();
    let id = running(&lab);
    let asked = json!({"question": "Which database?", "job": [1, 2]});
    let wait = opened(&lab, &id, &json!({"kind": "external", "request": asked}));
    let listed = lab.wait_status(&id, "waiting")["wait"].clone();
    assert_eq!(
        (&listed["kind"], &listed["request"], &listed["state"]),
        (&json!("external"), &asked, &json!("open"))
    );
    lab.restart();
    let before = lab.record().len();
    let said = String::from_utf8(lab.rekindle(&["waits"]).output().expect("it runs").stdout).expect("text");
    assert!(said.contains("A program asks: Which database?"), "{said}");
    let answered = lab.rekindle(&["answer", &wait, "--text", "Postgres"]).output().expect("it runs");
    assert!(answered.status.success(), "{answered:?}");
    let path = format!("/api/waits/{wait}/answer");
    assert_eq!(lab.ask("POST", &path, &json!({"text": "Postgres"})).status, 202, "the same answer again");
    let other = lab.ask("POST", &path, &json!({"form": {"name": "SQLite"}}));
    assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("token_consumed")));
    let ended = show(&lab, &wait);
    assert_eq!(
        (&ended["state"], &ended["how"], &ended["answer"]),
        (&json!("ended"), &json!("answered"), &json!({"text": "Postgres"}))
    );
    assert_eq!(lab.record().len(), before, "the agent was told nothing");
    lab.wait_status(&id, "running");
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.count(&id, "token.consumed"), lab.count(&id, "run.cancel_requested")), (1, 0));
}

#[test]
fn a_wait_of_a_program_is_opened_once_and_ends_with_its_run() {
    let lab = Lab::new();
    let id = running(&lab);
    let body = json!({"kind": "tool_result", "request": {"tool": "deploy"}});
    let once = |body: &Value| {
        let path = format!("/api/sessions/{id}/waits");
        lab.try_ask("POST", &path, "Idempotency-Key: w1\r\n", body).expect("an answer")
    };
    let (first, again) = (once(&body), once(&body));
    assert_eq!((first.status, &first.body), (201, &again.body), "the same wait");
    assert_eq!(lab.count(&id, "run.waiting"), 1);
    let other = once(&json!({"kind": "external", "request": 1}));
    assert_eq!(other.body["error"]["code"], "key_reused");
    // A message comes after the turn, as if nobody waited: the agent is not kept by it.
    let queued = lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say next"}));
    assert_eq!(queued["queued"], true);
    assert_eq!(lab.count(&id, "run.cancel_requested"), 0);
    lab.pass("here");
    wait_for("both turns", || (lab.count(&id, "run.completed") == 2).then_some(()));
    let wait = first.body["wait_id"].as_str().expect("an id");
    assert_eq!(show(&lab, wait)["how"], "withdrawn");
    let late = lab.ask("POST", &format!("/api/waits/{wait}/answer"), &json!({"text": "done"}));
    assert_eq!((late.status, &late.body["error"]["code"]), (409, &json!("wait_closed")));
    assert_eq!(lab.count(&id, "token.revoked"), 1);
    let none = open(&lab, &id, &body);
    assert_eq!((none.status, &none.body["error"]["code"]), (409, &json!("nothing_running")));
    for bad in [
        json!({"kind": "permission", "request": 1}),
        json!({"kind": "external"}),
        json!({"kind": "external", "request": 1, "timeout_s": 0}),
    ] {
        assert_eq!(open(&lab, &id, &bad).body["error"]["code"], "invalid_body", "{bad}");
    }
}

#[test]
fn a_wait_of_a_program_ends_at_its_time_and_the_run_goes_on() {
    let mut lab = Lab::without_daemon();
    lab.set_millis("REKINDLE_SLEPT", 0);
    lab.start();
    let id = running(&lab);
    let wait = opened(&lab, &id, &json!({"kind": "external", "request": "?", "timeout_s": 600}));
    lab.set_millis("REKINDLE_SLEPT", 601_000);
    wait_for("the end of the wait", || (show(&lab, &wait)["how"] == "timeout").then_some(()));
    assert_eq!((lab.status(&id).as_str(), lab.count(&id, "token.expired")), ("running", 1));
    let late = lab.ask("POST", &format!("/api/waits/{wait}/answer"), &json!({"text": "x"}));
    assert_eq!(late.body["error"]["code"], "wait_closed");
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
}

// I7: a token whose time has run out is told to be, and recorded once.
#[test]
fn an_expired_token_is_recorded_once_when_it_is_noticed() {
    let mut lab = Lab::without_daemon();
    lab.set_millis("REKINDLE_SLEPT", 0);
    lab.start();
    let id = lab.run("ask may I?\nsay thanks");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let token = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null)["token"].clone();
    lab.set_millis("REKINDLE_SLEPT", 25 * 3_600_000);
    for _ in 0..2 {
        let body = json!({"option": "allow_once", "token": token});
        let reply = lab.ask("POST", &format!("/api/waits/{wait}/answer"), &body);
        assert_eq!((reply.status, &reply.body["error"]["code"]), (410, &json!("token_expired")));
        wait_for("the record", || (lab.count(&id, "token.expired") == 1).then_some(()));
    }
    assert_eq!(lab.status(&id), "waiting", "the wait itself has no deadline");
    // Nobody shows the next one: the next daemon notices by itself.
    lab.post(&format!("/api/waits/{wait}/token"), &Value::Null);
    lab.set_millis("REKINDLE_SLEPT", 50 * 3_600_000);
    lab.restart();
    wait_for("the second record", || (lab.count(&id, "token.expired") == 2).then_some(()));
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.count(&id, "token.expired"), 2);
}
