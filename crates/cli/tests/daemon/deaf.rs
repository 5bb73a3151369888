//! Agents that do not heed a cancel: they are given their time and then ended, by whichever daemon is there.

use rekindle_domain::time::Timestamp;
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// How long a cancelled run has here, in milliseconds.
const WITHIN: u64 = 1500;

fn time_of(lab: &Lab, id: &str, kind: &str) -> Timestamp {
    let record = lab.log(id).into_iter().rfind(|record| record["kind"] == kind).expect(kind);
    record["ts"].as_str().expect("a time").parse().expect("a time")
}

// I13
#[test]
fn a_cancel_that_nobody_heeds_holds_across_daemons() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_CANCELLED_WITHIN", WITHIN);
    lab.start();
    let id = lab.run("say begun\nhang deaf");
    wait_for("the turn to begin", || (lab.prompted("hang deaf") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
    lab.restart();
    wait_for("the adoption", || (lab.count(&id, "run.adopted") == 1).then_some(()));
    assert_eq!(lab.wait_end(&id), "cancelled");
    wait_for("the agent to go", || lab.living_agents().is_empty().then_some(()));
    let kinds = ["run.cancel_requested", "run.cancelled", "run.interrupted", "agent.exited", "run.started"];
    assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 1, 0, 1, 1], "{:?}", lab.kinds(&id));
    let given = time_of(&lab, &id, "agent.exited").millis_since(time_of(&lab, &id, "run.adopted"));
    assert!(given >= WITHIN, "it had {given} ms only");
    // What comes next has an agent that listens.
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say again"}));
    wait_for("the next turn", || (lab.count(&id, "run.completed") == 1).then_some(()));
    assert_eq!((lab.agents().len(), lab.living_agents().len()), (2, 1));
}

// I7, I13
#[test]
fn an_agent_that_does_not_heed_the_end_of_its_time_is_ended_and_its_run_interrupted() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_CANCELLED_WITHIN", WITHIN);
    lab.set("REKINDLE_STOP_GRACE", 200);
    lab.start();
    let mut body = lab.session("ask-two may I? | really?\nsay never");
    body["wait_timeout_s"] = json!(1);
    let id = lab.create(&body);
    wait_for("both questions", || (lab.count(&id, "run.waiting") == 2).then_some(()));
    let agent = Identity::of(lab.agents()[0]).expect("it lives");
    signal_exactly(&agent, Signal::STOP).expect("it hears nothing more");
    wait_for("the deadline", || (lab.count(&id, "run.cancel_requested") == 1).then_some(()));
    lab.restart();
    wait_for("the agent to go", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    let kinds = ["run.interrupted", "run.cancelled", "run.resumed", "token.consumed", "run.started"];
    assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 0, 2, 0, 1], "{:?}", lab.kinds(&id));
    assert_eq!((lab.status(&id).as_str(), lab.living_agents().len()), ("interrupted_waiting", 0));
    let cut = lab.log(&id).into_iter().find(|record| record["kind"] == "run.interrupted").expect("cut");
    assert_eq!(cut["reason"], "wait_timeout");
}
