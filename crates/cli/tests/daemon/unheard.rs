//! A daemon whose own words nobody can take: what it writes about its work is worth less than the work.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

// I12: a full disk, on which the daemon's log is too, takes its words and nothing else.
#[test]
fn a_daemon_that_cannot_write_its_log_works_on() {
    let mut lab = Lab::without_daemon();
    lab.start_by(&["sh", "-c", r#"exec "$@" 2>/dev/full"#, "sh"]);
    let id = lab.run("say one");
    assert_eq!(lab.wait_end(&id), "completed");
    // Words are lost on every thread: of one who asks, of one who tends an agent, and of the main one.
    assert_eq!(lab.ask("GET", "/api/sessions/sess_none", &Value::Null).status, 404);
    let pid = lab.living_agents()[0];
    signal_exactly(&Identity::of(pid).expect("it lives"), Signal::KILL).expect("killed");
    // A prompt that it was given on its deathbed would be told to the next one in other words.
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    let next = lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    assert!(next["message_id"].is_string(), "{next}");
    wait_for("its words", || lab.said(&id).contains("two").then_some(()));
    assert!(lab.daemon_described(), "the same daemon is there");
}
