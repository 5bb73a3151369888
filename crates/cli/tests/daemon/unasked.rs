//! What was taken back before any agent heard of it: nobody is told of it afterwards.

use serde_json::json;

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

// I13: a cancel is not undone by telling the next agent of what was cancelled.
#[test]
fn a_prompt_that_was_cancelled_before_it_was_sent_is_told_to_nobody() {
    let lab = Lab::new();
    let mut body = lab.session("write danger.txt no");
    body["agent"]["command"] = json!(lab.demo(&["--slow-start", "2s"]));
    let id = lab.create(&body);
    // Its agent is there, and greets nobody yet.
    wait_for("its agent", || (lab.count(&id, "agent.started") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/cancel"), &json!(null));
    assert_eq!(lab.wait_end(&id), "cancelled");
    wait_for("a session of the agent's", || (lab.count(&id, "agent.ready") == 1).then_some(()));
    assert_eq!(lab.prompted("danger"), 0);
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.prompted("danger"), lab.prompted("Resume Context"), lab.agents().len()), (0, 0, 2));
    assert!(lab.said(&id).contains("two"), "{}", lab.said(&id));
    // Nothing was said in the first one's session, so that there is nothing to bring back.
    let asked = |method: &str| lab.record().iter().filter(|line| line.contains(method)).count();
    assert_eq!((asked("session/new"), asked("session/load"), lab.count(&id, "session.restored")), (2, 0, 0));
    assert!(!lab.path("work").join("danger.txt").exists());
}

#[test]
fn a_prompt_that_was_cancelled_while_it_was_worked_on_is_told_as_such() {
    let lab = Lab::new();
    let mut body = lab.session("say one\nhang");
    body["agent"]["command"] = json!(lab.demo(&["--no-load", "--no-resume"]));
    let id = lab.create(&body);
    wait_for("its turn", || (lab.prompted("say one") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/cancel"), &json!(null));
    assert_eq!(lab.wait_end(&id), "cancelled");
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.prompted("(cancelled by the user)"), lab.prompted("say one")), (1, 2));
}
