//! Sessions that make the daemon panic: the first two daemons die of it, the third leaves the session alone and serves everybody
//! else, until someone releases it. The same tests run on a release build, where a panic aborts: see CONTRIBUTING.md.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

const PANIC_AT: &str = "REKINDLE_PANIC_AT";

/// Runs a command; returns its exit code and what it printed.
fn told(lab: &Lab, arguments: &[&str]) -> (Option<i32>, String) {
    let output = lab.rekindle(arguments).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn reports(lab: &Lab, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(lab.home().join("crashes").join(format!("{id}.jsonl")));
    let text = text.unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Makes a session whose agent is busy, and another one.
fn busy_and_good(lab: &Lab) -> (String, String) {
    let bad = lab.run("barrier work\nsay done");
    lab.reach("work");
    let good = lab.run("say good");
    assert_eq!(lab.wait_end(&good), "completed");
    (bad, good)
}

// I4, I9, I10: nothing crashes twice, and what cannot be looked at is not declared dead.
#[test]
fn a_session_that_panics_when_it_is_loaded_ends_two_daemons_and_not_a_third() {
    let mut lab = Lab::new();
    let (bad, good) = busy_and_good(&lab);
    lab.kill();
    let at = format!("load@{bad}");
    for life in 1..=2 {
        let mut daemon = lab.begin(&[], &[(PANIC_AT, &at)]);
        let status = daemon.await_end().expect("it dies");
        assert!(!status.success(), "{status}");
        assert_eq!(reports(&lab, &bad).len(), life, "{:?}", reports(&lab, &bad));
    }
    let report = &reports(&lab, &bad)[0];
    assert_eq!((&report["doing"], &report["version"]), (&json!("load"), &json!(env!("CARGO_PKG_VERSION"))));
    assert!(report["message"].as_str().is_some_and(|words| words.contains(PANIC_AT)), "{report}");

    lab.start_with(&[], &[(PANIC_AT, &at)]);
    let health = lab.show(&bad)["health"].clone();
    assert_eq!(health["state"], "quarantined", "{health}");
    assert!(health["detail"].as_str().is_some_and(|words| words.contains("crash twice")), "{health}");
    for (method, path, body) in [
        ("POST", "/messages", json!({"content": "say no"})),
        ("GET", "/log", Value::Null),
        ("GET", "/events", Value::Null),
        ("POST", "/close", Value::Null),
        ("DELETE", "?force=1", Value::Null),
    ] {
        let reply = lab.ask(method, &format!("/api/sessions/{bad}{path}"), &body);
        let code = reply.body["error"]["code"].as_str();
        assert_eq!((reply.status, code), (409, Some("session_quarantined")), "{method} {path}");
    }
    lab.post(&format!("/api/sessions/{good}/messages"), &json!({"content": "say more"}));
    assert_eq!(lab.wait_end(&good), "completed", "everybody else is served");
    let release = lab.hint(&format!("doctor --release {bad}"));
    for arguments in [&["ps"][..], &["status", &bad], &["doctor"]] {
        let output = lab.rekindle(arguments).env(PANIC_AT, &at).output().expect("it runs");
        // Lines are wrapped at the width of a terminal.
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("quarantined"), "{arguments:?}: {text}");
        assert!(text.contains("twice") && text.contains(&release), "{arguments:?}: {text}");
    }
    assert_eq!(lab.living_agents().len(), 2, "its agent lives");

    // With the cause gone and released, it goes on where it was.
    lab.leave();
    lab.start();
    assert_eq!(lab.show(&bad)["health"]["state"], "quarantined", "nothing but a release frees it");
    for _ in 0..2 {
        let (code, text) = told(&lab, &["doctor", "--release", &bad]);
        assert_eq!(code, Some(0), "{text}");
    }
    assert!(reports(&lab, &bad).is_empty());
    lab.pass("work");
    assert_eq!(lab.wait_end(&bad), "completed");
    assert_eq!(lab.count(&bad, "run.interrupted"), 0, "{:?}", lab.kinds(&bad));
    assert_eq!(lab.prompted("barrier work"), 1);
}

// I1, I10: the logs are completed before anybody is served, and one of them must not end every daemon there.
#[test]
fn a_session_that_panics_in_the_redo_ends_two_daemons_and_loses_nothing() {
    let mut lab = Lab::new();
    let (bad, good) = (lab.run("say bad"), lab.run("say good"));
    for id in [&bad, &good] {
        lab.wait_end(id);
    }
    let kinds = lab.kinds(&bad);
    lab.kill();
    let at = format!("redo@{bad}");
    for life in 1..=2 {
        let mut daemon = lab.begin(&[], &[(PANIC_AT, &at)]);
        let status = daemon.await_end().expect("it dies");
        assert!(!status.success(), "{status}");
        assert_eq!(reports(&lab, &bad).len(), life, "{:?}", reports(&lab, &bad));
    }
    // Commands that look without a daemon pass it over too.
    for arguments in [&["status", &bad][..], &["doctor"]] {
        let output = lab.rekindle(arguments).env(PANIC_AT, &at).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("quarantined"), "{arguments:?}: {text}");
    }
    lab.start_with(&[], &[(PANIC_AT, &at)]);
    assert_eq!(lab.show(&bad)["health"]["state"], "quarantined");
    assert_eq!(lab.show(&good)["health"]["state"], "ok");
    lab.leave();
    lab.start();
    lab.post(&format!("/api/sessions/{bad}/release"), &json!({}));
    assert_eq!(lab.kinds(&bad)[..kinds.len()], kinds, "everything is there");
    lab.post(&format!("/api/sessions/{bad}/messages"), &json!({"content": "say more"}));
    assert_eq!(lab.wait_end(&bad), "completed");
}

// I10: also where nobody loads anything.
#[test]
fn a_session_whose_requests_panic_is_quarantined_and_released_without_a_daemon() {
    let mut lab = Lab::new();
    let (bad, good) = (lab.run("say bad"), lab.run("say good"));
    for id in [&bad, &good] {
        lab.wait_end(id);
    }
    lab.leave();
    let at = format!("request@{bad}");
    for life in 1..=2 {
        lab.start_with(&[], &[(PANIC_AT, &at)]);
        assert!(lab.try_get(&format!("/api/sessions/{good}")).is_some());
        assert!(lab.try_get(&format!("/api/sessions/{bad}")).is_none(), "it dies over it");
        lab.died();
        assert_eq!(reports(&lab, &bad).len(), life);
    }
    lab.start_with(&[], &[(PANIC_AT, &at)]);
    assert_eq!(lab.show(&bad)["health"]["state"], "quarantined");
    assert_eq!(lab.show(&good)["health"]["state"], "ok");
    lab.leave();
    let (code, text) = told(&lab, &["doctor"]);
    assert!(code == Some(1) && text.contains("session_quarantined"), "{code:?} {text}");
    for expected in ["is released", "was not quarantined"] {
        let (code, text) = told(&lab, &["doctor", "--release", &bad]);
        assert!(code == Some(0) && text.contains(expected), "{code:?} {text}");
    }
    let (code, text) = told(&lab, &["doctor", "--release", "sess_nobody"]);
    assert!(code != Some(0) && text.contains("sess_nobody"), "{code:?} {text}");
    lab.start();
    assert_eq!(lab.show(&bad)["health"]["state"], "ok");
    let unknown = lab.ask("POST", "/api/sessions/sess_nobody/release", &Value::Null);
    assert_eq!((unknown.status, unknown.body["error"]["code"].as_str()), (404, Some("session_unknown")));
}

// I4, I9: a daemon that is killed says nothing against the sessions that it worked on.
#[test]
fn a_daemon_that_is_killed_twice_while_busy_quarantines_nobody() {
    let mut lab = Lab::new();
    let (busy, _) = busy_and_good(&lab);
    for _ in 0..2 {
        lab.restart();
    }
    assert!(!lab.home().join("crashes").exists());
    assert_eq!(lab.show(&busy)["health"]["state"], "ok");
    lab.pass("work");
    wait_for("the end", || (lab.show(&busy)["run"]["state"] == "completed").then_some(()));
}
