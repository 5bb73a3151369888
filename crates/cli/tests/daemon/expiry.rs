//! What expires, when, and what cannot be answered any more: tokens that are gone, deadlines, clocks that jump.

use std::time::{Duration, Instant, SystemTime};

use rekindle_domain::chain::Link;
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

fn wait_id(lab: &Lab) -> String {
    let wait = wait_for("a wait", || lab.get("/api/waits")["waits"].get(0).cloned());
    wait["wait_id"].as_str().expect("an id").to_owned()
}

/// Changes what a session's log says, as if it had always said so: lines are numbered and chained anew, and nothing else
/// remembers what was there before.
fn rewrite(lab: &mut Lab, id: &str, change: impl FnOnce(&mut Vec<String>)) {
    lab.leave();
    for dir in ["wal", "sessions"] {
        for entry in std::fs::read_dir(lab.home().join(dir)).expect("a directory").flatten() {
            if entry.path().extension().is_none_or(|end| end != "jsonl") {
                std::fs::remove_file(entry.path()).expect("removed");
            }
        }
    }
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    let text = std::fs::read_to_string(&log).expect("a log");
    let without_hash = |line: &str| line.rsplit_once(",\"h\":").expect("a hash").0.to_owned();
    let mut lines: Vec<String> = text.lines().map(without_hash).collect();
    change(&mut lines);
    let (mut changed, mut last) = (String::new(), None);
    for (at, line) in lines.iter().enumerate() {
        let (_, rest) = line.split_once(",\"ts\":").expect("a time");
        let body = format!("{{\"seq\":{},\"ts\":{rest}", at + 1);
        let hash = Link::new(id.parse::<SessionId>().expect("an id"), last).hash(body.as_bytes());
        let digits = hash.to_hex();
        changed.push_str(&format!("{body},\"h\":\"{}\"}}\n", String::from_utf8_lossy(&digits)));
        last = Some(hash);
    }
    std::fs::write(&log, changed).expect("written");
}

/// Says whether agents were given an answer.
fn answered(lab: &Lab) -> bool {
    lab.record().iter().any(|line| line.contains("allow_once") || line.contains("reject_once"))
}

// I7, I8
#[test]
fn a_wait_whose_token_is_missing_is_interrupted_and_cannot_be_answered() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?\nsay thanks");
    let wait = wait_id(&lab);
    rewrite(&mut lab, &id, |lines| {
        let minted = lines.pop().expect("a line");
        assert!(minted.contains("\"kind\":\"token.minted\""), "{minted}");
        // Else what belongs together is known not to be whole, and asked for again.
        let asked = lines.last_mut().expect("a line");
        *asked = asked.replace(",\"more\":true", "");
    });
    for _ in 0..2 {
        lab.start();
        lab.wait_status(&id, "interrupted_waiting");
        let path = format!("/api/waits/{wait}/answer");
        let reply = lab.ask("POST", &path, &json!({"option": "allow_once"}));
        assert!(matches!(reply.status, 401 | 409 | 410), "{} {}", reply.status, reply.body);
        lab.kill();
    }
    lab.start();
    assert_eq!((lab.count(&id, "token.consumed"), lab.count(&id, "run.resumed")), (0, 0));
    assert!(!answered(&lab), "nobody answered it");
}

// I7, I8
#[test]
fn a_wait_that_expired_while_nobody_was_there_is_interrupted_and_cannot_be_answered() {
    let mut lab = Lab::new();
    let mut body = lab.session("ask may I?\nsay never");
    body["wait_timeout_s"] = json!(1);
    let id = lab.create(&body);
    let wait = wait_id(&lab);
    let token = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null)["token"].clone();
    let deadline = Instant::now() + Duration::from_millis(1200);
    lab.kill();
    wait_for("the deadline to pass", || (Instant::now() >= deadline).then_some(()));
    lab.start();
    lab.wait_status(&id, "interrupted_waiting");
    let path = format!("/api/waits/{wait}/answer");
    let reply = lab.ask("POST", &path, &json!({"option": "allow_once", "token": token}));
    assert!(matches!(reply.status, 409 | 410), "{} {}", reply.status, reply.body);
    let resume = json!({"token": token, "answer": {"option": "allow_once"}});
    let reply = lab.ask("POST", &format!("/api/sessions/{id}/resume"), &resume);
    assert!(matches!(reply.status, 409 | 410), "{} {}", reply.status, reply.body);
    wait_for("the end", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
    lab.restart();
    lab.wait_status(&id, "interrupted_waiting");
    assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "token.consumed")), (1, 0));
    assert!(!answered(&lab), "nobody answered it");
}

// I7: a clock that is behind what was recorded knows nothing of deadlines.
#[test]
fn nothing_expires_while_the_clock_is_behind_the_newest_record() {
    let mut lab = Lab::new();
    let mut body = lab.session("ask may I?\nsay thanks");
    body["wait_timeout_s"] = json!(3);
    let id = lab.create(&body);
    let wait = wait_id(&lab);
    let deadline = Instant::now() + Duration::from_millis(3500);
    // As if the clock had been an hour ahead and was set right.
    let ahead = SystemTime::now() + Duration::from_secs(3600);
    let millis = ahead.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis();
    let ahead = Timestamp::from_millis(i64::try_from(millis).expect("before long")).to_string();
    rewrite(&mut lab, &id, |lines| {
        let last = lines.last_mut().expect("a line");
        let (front, rest) = last.split_once(",\"ts\":\"").expect("a time");
        let rest = rest.split_once('"').expect("its end").1;
        *last = format!("{front},\"ts\":\"{ahead}\"{rest}");
    });
    lab.start();
    wait_for("the deadline to pass", || (Instant::now() >= deadline).then_some(()));
    assert_eq!((lab.status(&id).as_str(), lab.count(&id, "run.interrupted")), ("waiting", 0));
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(lab.said(&id).contains("thanks"));
}

/// Sets the clock that a daemon sees.
fn set_clock(lab: &mut Lab, hours: i64) {
    lab.set_millis("REKINDLE_CLOCK_AHEAD", hours * 3_600_000);
}

// I7: deadlines go by a clock that nobody sets.
#[test]
fn a_clock_set_ahead_or_back_expires_nothing_before_its_time() {
    let mut lab = Lab::without_daemon();
    set_clock(&mut lab, 0);
    lab.start();
    let mut body = lab.session("ask may I?\nsay thanks");
    body["wait_timeout_s"] = json!(600);
    let id = lab.create(&body);
    let wait = wait_id(&lab);
    let token = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null)["token"].clone();
    // Within one life of the daemon, and across another.
    for life in 0..2 {
        for hours in [48, 0, -48, 48] {
            set_clock(&mut lab, hours);
            assert_eq!(lab.status(&id), "waiting", "{hours} h, life {life}");
            let offline = lab.rekindle(&["status", &id, "--json"]).output().expect("it runs");
            assert!(String::from_utf8_lossy(&offline.stdout).contains("\"waiting\""), "{hours} h");
        }
        lab.restart();
        lab.wait_status(&id, "waiting");
    }
    let answer = json!({"option": "allow_once", "token": token});
    assert_eq!(lab.ask("POST", &format!("/api/waits/{wait}/answer"), &answer).status, 202);
    assert_eq!(lab.wait_end(&id), "completed");
    // What is asked by a clock that was set back has its time too.
    set_clock(&mut lab, -48);
    let second = lab.create(&body);
    lab.wait_status(&second, "waiting");
    let watched = Instant::now() + Duration::from_millis(2500);
    wait_for("the worker to look at its deadlines", || {
        assert_eq!(lab.status(&second), "waiting");
        (Instant::now() >= watched).then_some(())
    });
}
