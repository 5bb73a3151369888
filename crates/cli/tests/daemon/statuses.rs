//! Statuses as they change: told to whoever follows, and recorded where recovery changed one.

use rekindle_domain::time::Timestamp;
use serde_json::json;

use crate::lab::{Events, Lab, wait_for};

/// Hears statuses until one comes.
fn until(events: &mut Events, wanted: &str) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let next = events.next().expect("an event");
        if next.event == "status.derived" && next.id.is_none() {
            assert!(next.data["evidence"].is_object());
            heard.push(next.data["status"].as_str().expect("a status").to_owned());
            if heard.last().is_some_and(|last| last == wanted) {
                return heard;
            }
        }
    }
}

// I8: what is told live is what is derived.
#[test]
fn whoever_follows_is_told_every_change_of_status_once() {
    let lab = Lab::new();
    let id = lab.run("say one\nask Write the file?\nbarrier here\nsay two");
    let mut events = lab.follow(&id, None);
    let before = until(&mut events, "waiting");
    assert!(before == ["waiting"] || before == ["running", "waiting"], "{before:?}");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(until(&mut events, "running"), ["running"]);
    lab.reach("here");
    lab.pass("here");
    assert_eq!(until(&mut events, "idle"), ["idle"]);
}

// I8, I14: recovery says once, in the log, what it made of the status.
#[test]
fn an_interruption_is_recorded_with_the_status_it_leads_to() {
    for (prompt, reached, status) in [
        ("say one\nbarrier here\nsay two", "running", "interrupted_agent"),
        ("say one\nask Write the file?", "waiting", "interrupted_waiting"),
    ] {
        let mut lab = Lab::new();
        let mut body = lab.session(prompt);
        body["resume"] = json!("never");
        let id = lab.create(&body);
        if reached == "running" {
            lab.reach("here");
        }
        lab.wait_status(&id, reached);
        let agents = lab.agents();
        lab.kill();
        for agent in agents {
            let agent = rustix::process::Pid::from_raw(agent).expect("a process");
            rustix::process::kill_process(agent, rustix::process::Signal::KILL).expect("killed");
        }
        for _ in 0..2 {
            lab.start();
            lab.wait_status(&id, status);
            // Proof alone leads to it; the record comes a moment later.
            wait_for("the record", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
            lab.kill();
        }
        lab.start();
        let log = lab.log(&id);
        let told: Vec<_> = log.iter().filter(|record| record["kind"] == "status.derived").collect();
        assert_eq!(told.len(), 1, "{log:?}");
        assert_eq!(told[0]["status"], status);
        assert_eq!(lab.count(&id, "run.interrupted"), 1);
    }
}

// I8: how the daemon stands with an agent is another thing than the session's status, and is not remembered.
#[test]
fn a_connection_has_a_state_of_its_own_that_begins_at_idle() {
    let mut lab = Lab::new();
    let mut body = lab.session("say one\nbarrier here");
    body["resume"] = json!("never");
    let id = lab.create(&body);
    lab.reach("here");
    let connection = |lab: &Lab| lab.show(&id)["connection"].as_str().expect("a state").to_owned();
    let comes = |lab: &Lab, wanted: &str| wait_for(wanted, || (connection(lab) == wanted).then_some(()));
    comes(&lab, "running");
    lab.pass("here");
    lab.wait_end(&id);
    comes(&lab, "ready");
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "barrier there"}));
    lab.reach("there");
    comes(&lab, "running");
    for agent in lab.agents() {
        let agent = rustix::process::Pid::from_raw(agent).expect("a process");
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).expect("killed");
    }
    comes(&lab, "interrupted");
    lab.wait_status(&id, "interrupted_agent");
    lab.restart();
    assert_eq!((lab.status(&id).as_str(), connection(&lab).as_str()), ("interrupted_agent", "idle"));
}

// I8: words that are in no record yet were said all the same.
#[test]
fn the_last_output_is_that_of_an_unfinished_message_too() {
    let lab = Lab::new();
    let id = lab.run("barrier here\nsay one\nbarrier there");
    let last = |lab: &Lab| -> Option<Timestamp> {
        lab.show(&id)["evidence"]["last_output_at"].as_str().and_then(|text| text.parse().ok())
    };
    lab.reach("here");
    let before = wait_for("that it is ready", || last(&lab));
    lab.pass("here");
    lab.reach("there");
    wait_for("its words", || (last(&lab)? > before).then_some(()));
    assert_eq!(lab.count(&id, "message.agent"), 0, "they are in no record");
    lab.pass("there");
    lab.wait_end(&id);
}
