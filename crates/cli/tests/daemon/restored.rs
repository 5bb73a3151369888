//! A log that was put back from a copy while its agent lives: it knows less than the holder.

use serde_json::json;

use crate::lab::{Lab, wait_for};

// I5: a number that was used is not used again, and what is asked is done.
#[test]
fn a_prompt_after_a_log_was_put_back_reaches_the_agent() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    lab.leave();
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    let copy = std::fs::read(&log).expect("a log");
    lab.start();
    let path = format!("/api/sessions/{id}/messages");
    lab.post(&path, &json!({"content": "say two"}));
    wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    lab.leave();
    std::fs::write(&log, copy).expect("put back");
    for entry in std::fs::read_dir(lab.home().join("sessions")).expect("a directory").flatten() {
        if entry.path() != log {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    lab.start();
    lab.wait_status(&id, "idle");
    lab.post(&path, &json!({"content": "say three"}));
    wait_for("the turn", || lab.said(&id).contains("three").then_some(()));
    wait_for("its end", || (lab.status(&id) == "idle").then_some(()));
    assert_eq!((lab.prompted("say two"), lab.prompted("say three")), (1, 1));
}
