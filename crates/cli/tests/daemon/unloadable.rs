//! Sessions that cannot be loaded: they are listed with the reason wherever sessions are listed, nothing is added to them, and
//! the others are not concerned.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::Lab;

fn file(lab: &Lab, id: &str, suffix: &str) -> PathBuf {
    lab.home().join("sessions").join(format!("{id}{suffix}"))
}

/// Runs a command; returns its exit code and what it printed.
fn told(lab: &Lab, arguments: &[&str]) -> (Option<i32>, String) {
    let output = lab.rekindle(arguments).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Returns what a list has of a session.
fn listed(sessions: &Value, id: &str) -> Value {
    let sessions = sessions["sessions"].as_array().expect("sessions");
    let found = sessions.iter().find(|session| session["id"] == id);
    found.unwrap_or_else(|| panic!("{id} is not listed")).clone()
}

fn assert_degraded(session: &Value, reason: &str, where_: &str) {
    assert_eq!(session["health"]["state"], "degraded", "{where_}: {session}");
    let detail = session["health"]["detail"].as_str().expect("a detail");
    assert!(detail.contains(reason), "{where_}: {detail}");
}

/// Asserts that a session is shown everywhere with what is wrong with it, with a daemon and without one.
fn assert_shown(lab: &mut Lab, id: &str, reason: &str) {
    let ps = |lab: &Lab| {
        let (code, text) = told(lab, &["ps", "-a", "--json"]);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str::<Value>(text.lines().last().expect("a line")).expect("JSON")
    };
    assert_degraded(&listed(&ps(lab), id), reason, "ps without a daemon");
    let (_, text) = told(lab, &["status", id]);
    assert!(text.contains(reason), "status without a daemon: {text}");
    let (code, text) = told(lab, &["doctor"]);
    assert!(text.contains(id) && code == Some(1), "doctor: {code:?} {text}");
    lab.start();
    assert_degraded(&listed(&lab.get("/api/sessions"), id), reason, "the list");
    assert_degraded(&lab.show(id), reason, "the session");
    assert_degraded(&listed(&ps(lab), id), reason, "ps");
    let (_, text) = told(lab, &["status", id]);
    assert!(text.contains(reason), "status: {text}");
}

/// Asserts that whatever would add to a session is refused, and says why.
fn assert_refused(lab: &Lab, id: &str, status: u16, code: &str) {
    let path = format!("/api/sessions/{id}");
    for (method, path, body) in [
        ("POST", format!("{path}/messages"), json!({"content": "say no"})),
        ("PATCH", path.clone(), json!({"title": "no"})),
        ("POST", format!("{path}/close"), Value::Null),
        ("POST", format!("{path}/resume"), Value::Null),
        ("DELETE", format!("{path}?force=1"), Value::Null),
    ] {
        let reply = lab.ask(method, &path, &body);
        assert_eq!(
            (reply.status, reply.body["error"]["code"].as_str()),
            (status, Some(code)),
            "{method} {path}"
        );
    }
}

fn two_sessions(lab: &Lab) -> (String, String) {
    let (bad, good) = (lab.run("say bad"), lab.run("say good"));
    for id in [&bad, &good] {
        lab.wait_end(id);
    }
    (bad, good)
}

fn assert_works(lab: &Lab, id: &str) {
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say more"}));
    assert_eq!(lab.wait_end(id), "completed");
}

/// I10, I12: a newer version's state cache isolates its session, and hides nothing.
#[test]
fn a_session_with_a_newer_state_cache_is_listed_by_its_log_and_left_alone() {
    let mut lab = Lab::new();
    let (bad, good) = two_sessions(&lab);
    lab.leave();
    assert!(lab.home().join("sessions/index.json").exists(), "the list vouches for both");
    let newer = json!({"version": 99, "id": bad, "what": "nobody knows"}).to_string();
    std::fs::write(file(&lab, &bad, ".json"), &newer).expect("written");
    assert_shown(&mut lab, &bad, "version 99");
    assert_eq!(lab.show(&bad)["title"], "say bad", "the log tells");
    assert!(lab.said(&bad).contains("bad"));
    assert_refused(&lab, &bad, 409, "session_newer");
    assert_works(&lab, &good);
    // Leaving it alone includes the next start, and its file.
    lab.leave();
    lab.start();
    assert_degraded(&listed(&lab.get("/api/sessions"), &bad), "version 99", "after another start");
    assert_eq!(std::fs::read_to_string(file(&lab, &bad, ".json")).expect("read"), newer);
    // Put right, it is there again.
    std::fs::remove_file(file(&lab, &bad, ".json")).expect("removed");
    assert_eq!(lab.show(&bad)["health"]["state"], "ok");
    assert_works(&lab, &bad);
}

/// I10, I12: what stands in the place of a log and is none is said to be so; nobody waits for the other end of a FIFO.
#[test]
fn a_session_whose_log_is_a_fifo_a_link_or_a_directory_is_listed() {
    let put_there = ["mkfifo \"$0\"", "ln -s /etc/hostname \"$0\"", "mkdir \"$0\""];
    // Whatever was left in the write-ahead log by a daemon that could not tidy up.
    let cases = put_there.map(|put| (put, true)).into_iter().chain([(put_there[0], false)]);
    for (put, in_order) in cases {
        let mut lab = Lab::new();
        let (bad, good) = two_sessions(&lab);
        if in_order {
            lab.leave();
        } else {
            lab.kill();
        }
        let log = file(&lab, &bad, ".messages.jsonl");
        std::fs::rename(&log, lab.path("kept")).expect("moved");
        let made = Command::new("sh").args(["-c", put]).arg(&log).status().expect("a shell");
        assert!(made.success());
        assert_shown(&mut lab, &bad, "messages.jsonl");
        assert_refused(&lab, &bad, 500, "storage");
        assert_works(&lab, &good);
    }
}

/// I12: a list that was written last knows of a log that is gone.
#[test]
fn a_log_that_was_deleted_after_an_orderly_stop_is_missed_by_the_doctor() {
    let mut lab = Lab::new();
    let (bad, good) = two_sessions(&lab);
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{good}?force=1"), &Value::Null).status, 204);
    let agents = lab.living_agents();
    lab.leave();
    let (code, text) = told(&lab, &["doctor"]);
    assert_eq!(code, Some(0), "whoever was removed in order is not missed: {text} {agents:?}");
    for entry in std::fs::read_dir(lab.home().join("sessions")).expect("a directory").flatten() {
        if entry.file_name().to_string_lossy().starts_with(&bad) {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    let (code, text) = told(&lab, &["doctor"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&bad) && text.contains("missing") && !text.contains(&good), "{text}");
    // Daemons come and go, and write lists of their own: it is missed until somebody gives it up.
    for _ in 0..2 {
        lab.start();
        let listed = lab.get(&format!("/api/sessions/{bad}"));
        assert_eq!(listed["health"]["state"], "damaged", "{listed}");
        let detail = listed["health"]["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("its log is missing"), "{listed}");
        lab.leave();
        let (code, text) = told(&lab, &["doctor"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(&bad), "{text}");
    }
    lab.start();
    let (code, text) = told(&lab, &["rm", "--force", &bad]);
    assert_eq!(code, Some(0), "{text}");
    lab.leave();
    let (code, text) = told(&lab, &["doctor"]);
    assert_eq!(code, Some(0), "{text}");
}
