//! Mode and model: asked for and taken before anything is said, changed while an agent lives, asked for again of the next.

use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};
use crate::ran::{Stdin, ran};

/// Returns the request for a session with a demo agent of these habits, in this mode.
fn session(lab: &Lab, prompt: &str, habits: &[&str], settings: &Value) -> Value {
    let mut body = lab.session(prompt);
    body["agent"]["command"] = json!(lab.demo(habits));
    for (name, value) in settings.as_object().expect("settings") {
        body[name] = value.clone();
    }
    body
}

/// Returns how many lines agents were told that have these words.
fn told(lab: &Lab, words: &str) -> usize {
    lab.record().iter().filter(|line| line.contains(words)).count()
}

#[test]
fn an_agent_that_does_not_take_the_mode_gets_no_prompt() {
    let lab = Lab::new();
    let run = |mode: &str, habits: &[&str]| {
        let agent = lab.demo(habits);
        let mut words = vec!["run", "write x.txt hi\nsay done", "--mode", mode, "--"];
        words.extend(agent.iter().map(String::as_str));
        ran(&mut lab.rekindle(&words), Stdin::Nothing)
    };
    run("nosuch", &[]).exits(1).tells("no mode \"nosuch\"").tells("it offers: default, yolo");
    assert_eq!(told(&lab, "session/set_mode"), 0, "what is not offered is not asked for");
    let slow = ["--refuse-settings", "--slow-settings", "200ms"];
    run("yolo", &slow).exits(1).tells("refused the mode \"yolo\"").tells("it offers: default, yolo");
    assert_eq!((told(&lab, "session/set_mode"), told(&lab, "session/prompt")), (1, 0));
    assert!(!lab.path("work").join("x.txt").exists(), "it was told nothing");
    run("yolo", &["--slow-settings", "200ms"]).exits(0);
    assert!(lab.path("work").join("x.txt").exists());
}

// I4, I5: a setting that was asked for is awaited by whoever comes next, and not asked for again.
#[test]
fn a_daemon_that_dies_between_setting_and_answer_leaves_both_to_the_next() {
    let mut lab = Lab::new();
    let settings = json!({"mode": "yolo", "model": "demo-large"});
    let id = lab.create(&session(&lab, "ask may I?\nsay done", &["--hold-settings", "here"], &settings));
    lab.reach("here");
    lab.restart();
    wait_for("the next one", || (lab.count(&id, "run.adopted") == 1).then_some(()));
    assert_eq!(told(&lab, "session/prompt"), 0);
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed", "in this mode nobody is asked");
    let told = [told(&lab, "session/set_mode"), told(&lab, "session/set_config_option"), lab.prompted("")];
    assert_eq!(told, [1, 1, 1]);
}

// I1: a change is recorded, so that every agent of the session hears of it.
#[test]
fn mode_and_model_can_be_changed_while_the_agent_lives_and_the_next_one_is_asked_too() {
    let lab = Lab::new();
    let id = lab.create(&session(&lab, "say one", &["--models", "field"], &json!({})));
    assert_eq!(lab.wait_end(&id), "completed");
    let path = format!("/api/sessions/{id}");
    let refused = lab.ask("PATCH", &path, &json!({"model": "nosuch"}));
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("setting_unknown")));
    let why = refused.body["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("it offers: demo-small, demo-large"), "{why}");
    let changed = lab.ask("PATCH", &path, &json!({"model": "demo-large", "mode": "yolo"})).body;
    assert_eq!((&changed["model"], &changed["mode"]), (&json!("demo-large"), &json!("yolo")), "{changed}");
    let both = |times| ["set_mode\"", "set_model\""].iter().all(|method| told(&lab, method) == times);
    wait_for("the living one to be asked", || both(1).then_some(()));
    lab.post(&format!("{path}/messages"), &json!({"content": "ask may I?\nsay two"}));
    wait_for("the second answer", || lab.said(&id).contains("two").then_some(()));
    lab.wait_end(&id);
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.post(&format!("{path}/messages"), &json!({"content": "ask may I?\nsay three"}));
    wait_for("the third answer", || lab.said(&id).contains("three").then_some(()));
    assert!(both(2), "{:?}", lab.record());
}

#[test]
fn a_refused_change_fails_the_next_run_and_another_one_mends_it() {
    let lab = Lab::new();
    let habits = ["--refuse-settings"];
    let id = lab.create(&session(&lab, "say one", &habits, &json!({"mode": "yolo"})));
    assert_eq!(lab.wait_end(&id), "failed");
    let session = lab.show(&id);
    let why = session["run"]["detail"].as_str().unwrap_or_default();
    assert!(why.contains("refused the mode \"yolo\"") && why.contains("default, yolo"), "{session}");
    assert_eq!((lab.count(&id, "run.failed"), lab.living_agents().len()), (1, 1), "the agent stays");
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    wait_for("the next failure", || (lab.count(&id, "run.failed") == 2).then_some(()));
    assert_eq!((told(&lab, "session/set_mode"), lab.prompted("")), (2, 0), "it was asked once more");
}

#[test]
fn a_command_has_nothing_to_choose_from() {
    let lab = Lab::new();
    let mut body = lab.session("do it");
    body["agent"] = json!({"profile": "exec", "command": ["cat"]});
    let id = lab.create(&body);
    let changed = lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"model": "large"}));
    body["model"] = json!("large");
    let made = lab.ask("POST", "/api/sessions", &body);
    for reply in [changed, made] {
        assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("setting_unknown")));
    }
}
