//! What only a caller has: values of variables, which are in the agent and in memory and on no disk.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, holds, wait_for};

const NAME: &str = "SOME_KEY";
const VALUE: &str = "a-value-that-is-nowhere-81c2";

fn with_env(lab: &Lab, prompt: &str) -> Value {
    let mut body = lab.session(prompt);
    body["env"] = json!({NAME: VALUE});
    body
}

#[track_caller]
fn wait_held(lab: &Lab, id: &str) {
    wait_for("why it is held", || lab.show(id)["held"].as_str()?.contains(NAME).then_some(()));
}

#[track_caller]
fn is_nowhere(lab: &Lab) {
    assert!(!holds(&lab.home(), VALUE), "a value is on disk");
    assert!(!lab.daemon_log().contains(VALUE), "a value is in the daemon's log");
}

fn kill(pid: i32) {
    signal_exactly(&Identity::of(pid).expect("it lives"), Signal::KILL).expect("killed");
}

// I8, I12
#[test]
fn a_continuation_without_its_environment_is_held_until_someone_brings_it() {
    let mut lab = Lab::new();
    let id =
        lab.create(&with_env(&lab, "run printf %s \"$SOME_KEY\" | wc -c > before\nbarrier here\nsay after"));
    lab.reach("here");
    let given = std::fs::read_to_string(lab.path("work").join("before")).expect("the agent wrote it");
    assert_eq!(given.trim(), VALUE.len().to_string(), "the agent has the value");
    is_nowhere(&lab);
    lab.restart();
    kill(lab.agents()[0]);
    wait_held(&lab, &id);
    let status = lab.rekindle(&["status", &id]).output().expect("it runs");
    let words = String::from_utf8_lossy(&[status.stdout, status.stderr].concat()).into_owned();
    assert!(words.contains(NAME), "{words}");
    // Another restart changes nothing: no agent is started without it.
    lab.restart();
    wait_held(&lab, &id);
    assert_eq!((lab.agents().len(), lab.count(&id, "run.interrupted")), (1, 1));
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.agents().len(), lab.count(&id, "run.started")), (2, 2));
    is_nowhere(&lab);
}

// I12
#[test]
fn a_resume_that_lacks_variables_is_refused_by_their_names() {
    let mut lab = Lab::new();
    let mut body = with_env(&lab, "barrier here\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    lab.restart();
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_agent");
    let path = format!("/api/sessions/{id}/resume");
    let reply = lab.ask("POST", &path, &json!({}));
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("env_missing")));
    assert!(
        reply.body["error"]["message"].as_str().is_some_and(|words| words.contains(NAME)),
        "{}",
        reply.body
    );
    lab.post(&path, &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    is_nowhere(&lab);
}

// I5: a holder that waits for its start gets it with everything, or not at all.
#[test]
fn an_agent_that_was_never_started_is_not_started_without_its_environment() {
    let mut lab = Lab::without_daemon();
    lab.start_to_die("launch.after_spawn");
    let _ = lab.try_ask(
        "POST",
        "/api/sessions",
        "",
        &with_env(&lab, "run printf %s \"$SOME_KEY\" | wc -c > given"),
    );
    lab.died();
    lab.start();
    let id = lab.get("/api/sessions")["sessions"][0]["id"].as_str().expect("it is there").to_owned();
    wait_held(&lab, &id);
    assert!(lab.agents().is_empty(), "nobody was started without it");
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    let given = std::fs::read_to_string(lab.path("work").join("given")).expect("the agent wrote it");
    assert_eq!((given.trim(), lab.agents().len()), (VALUE.len().to_string().as_str(), 1));
    is_nowhere(&lab);
}
