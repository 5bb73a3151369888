//! What a session is and does, changed by command: renamed, given other policies, closed; waits answered by a token.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

#[test]
fn a_session_is_renamed_and_given_other_policies() {
    let lab = Lab::new();
    let id = lab.run("ask may I?\nsay done");
    lab.wait_status(&id, "waiting");
    let renamed = ["set", &id, "--title", "Another name", "--resume", "never", "--on-uncertain", "continue"];
    let told = lab.ran(&renamed).exits(0);
    assert!(told.err.contains("Another name"), "{told:?}");
    lab.ran(&["set", &id, "--permissions", "allow", "--wait-timeout", "2h", "--checkpoints", "on"]).exits(0);
    let changed =
        || lab.log(&id).into_iter().rfind(|record| record["kind"] == "session.updated").expect("changed");
    let options = changed()["options"].clone();
    let expected = json!({
        "resume": "never", "on_uncertain": "continue", "permissions": "allow", "wait_timeout_s": 7200, "checkpoints": "on",
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&options[name], value, "{options}");
    }
    assert_eq!(lab.show(&id)["title"], "Another name");
    lab.ran(&["set", &id, "--wait-timeout", "never"]).exits(0);
    assert_eq!(changed()["options"]["wait_timeout_s"], Value::Null);
    // The question that was open is still asked; the next is answered by the policy.
    lab.ran(&["answer", "yes"]).exits(0);
    lab.wait_end(&id);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "ask and this?\nsay done"}));
    assert_eq!(lab.wait_end(&id), "completed");
    let nothing = lab.ran(&["set", &id]).exits(2);
    assert!(nothing.err.contains("nothing to change"), "{nothing:?}");
}

#[test]
fn a_question_waits_as_the_daemon_is_configured_and_is_answered_by_a_token() {
    let mut lab = Lab::without_daemon();
    lab.configure("[waits]\ntimeout = \"3h\"\ntoken_lifetime = \"10m\"\n");
    lab.start();
    let id = lab.run("ask may I?");
    let asked = lab.wait_status(&id, "waiting")["wait"].clone();
    assert!(asked["deadline_at"].is_string(), "{asked}");
    let wait = asked["wait_id"].as_str().expect("a wait").to_owned();
    // Somebody who has nothing but a token may answer, once.
    let minted = lab.ran(&["waits", "--mint", &wait]).exits(0);
    let token = minted.out.trim().to_owned();
    assert!(token.starts_with("rt_") && minted.err.contains("valid until"), "{minted:?}");
    let wrong =
        lab.ran(&["answer", &wait, "allow_once", "--token", "rt_01khz0p6r8vk6mqj3b8y2c9d4e.x"]).exits(1);
    assert!(wrong.err.contains("token"), "{wrong:?}");
    lab.ran(&["answer", &wait, "allow_once", "--token", &token]).exits(0);
    assert_eq!(lab.wait_end(&id), "completed");
    let named = lab.ran(&["answer", "yes", "--token", &token]).exits(2);
    assert!(named.err.contains("the id of its wait"), "{named:?}");
}

#[test]
fn a_session_is_closed_and_its_log_stays() {
    let lab = Lab::new();
    let id = lab.run("say done");
    lab.wait_end(&id);
    let told = lab.ran(&["close", &id]).exits(0);
    assert!(told.out.contains("fork"), "{told:?}");
    wait_for("the agent's end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    assert_eq!(lab.show(&id)["closed"], true);
    lab.ran(&["close", "sess_nobody"]).exits(2);
}
