//! A session that is removed: with its answer nothing is left of it, and to everybody else it is gone before.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// What is left of a session: its log, the agents and the holders of the home.
fn left(lab: &Lab, id: &str) -> (bool, usize, usize) {
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    (log.exists(), lab.living_agents().len(), lab.living_holders().len())
}

// I13: there is nobody to wait for.
#[test]
fn a_deleted_session_is_gone_with_its_agent() {
    let lab = Lab::new();
    let idle = lab.run("say one");
    lab.wait_end(&idle);
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{idle}"), &Value::Null).status, 204);
    assert_eq!(left(&lab, &idle), (false, 0, 0));
    let busy = lab.run("barrier here");
    lab.reach("here");
    let path = format!("/api/sessions/{busy}");
    assert_eq!(lab.ask("DELETE", &path, &Value::Null).status, 409);
    assert_eq!(lab.ask("DELETE", &format!("{path}?force=1"), &Value::Null).status, 204);
    assert_eq!(left(&lab, &busy), (false, 0, 0));
    assert_eq!(lab.ask("GET", &path, &Value::Null).status, 404);
}

// I13: an agent that does not heed takes its time.
#[test]
fn a_session_that_is_being_removed_is_gone_for_everybody_and_its_removal_ends_with_its_agent() {
    let mut lab = Lab::without_daemon();
    // Twice that, until it is killed: enough to be asked for meanwhile.
    lab.set("REKINDLE_STOP_GRACE", 1500);
    lab.start();
    let (body, key) = (lab.session("say begun\nhang"), "Idempotency-Key: one\r\n");
    let make = || lab.try_ask("POST", "/api/sessions", key, &body).expect("an answer");
    let id = make().body["id"].as_str().expect("an id").to_owned();
    wait_for("the turn to begin", || (lab.prompted("hang") == 1).then_some(()));
    let agent = Identity::of(lab.agents()[0]).expect("it lives");
    signal_exactly(&agent, Signal::STOP).expect("it hears nothing more");
    let path = format!("/api/sessions/{id}");
    std::thread::scope(|scope| {
        let removed = scope.spawn(|| {
            let status = lab.ask("DELETE", &format!("{path}?force=1"), &Value::Null).status;
            (status, left(&lab, &id))
        });
        wait_for("its record", || (lab.ask("GET", &path, &Value::Null).status == 404).then_some(()));
        let refused = [
            lab.ask("PATCH", &path, &json!({"title": "new"})),
            lab.ask("PATCH", &path, &json!({"resume": "never"})),
            lab.ask("POST", &format!("{path}/messages"), &json!({"content": "say more"})),
            lab.ask("DELETE", &path, &Value::Null),
        ];
        for reply in refused {
            assert_eq!((reply.status, &reply.body["error"]["code"]), (404, &json!("session_unknown")));
        }
        let again = make();
        assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("not_now")), "{}", again.body);
        assert_eq!(lab.living_agents().len(), 1, "it has its time");
        assert_eq!(removed.join().expect("no panic"), (204, (false, 0, 0)));
    });
    // Its key went with it.
    let other = make();
    assert!(other.status == 201 && other.body["id"] != id.as_str(), "{}", other.body);
}
