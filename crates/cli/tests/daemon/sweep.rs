//! What is looked after without anybody asking: directories of dead holders go, and nothing else does.

use std::collections::BTreeSet;

use serde_json::json;

use crate::lab::{Lab, wait_for};

fn holders(lab: &Lab) -> BTreeSet<String> {
    let entries = std::fs::read_dir(lab.home().join("holders")).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn holder_of(lab: &Lab, id: &str) -> String {
    let log = lab.log(id);
    let launching = log.iter().rev().find(|record| record["kind"] == "agent.launching").expect("a launch");
    launching["holder_id"].as_str().expect("an id").to_owned()
}

// I12: a journal goes when the log has it, and not before.
#[test]
fn directories_of_dead_holders_go_and_all_others_stay() {
    let mut lab = Lab::new();
    let ended = lab.run("say one");
    lab.wait_end(&ended);
    let (said, dead) = (lab.said(&ended), holder_of(&lab, &ended));
    lab.post(&format!("/api/sessions/{ended}/close"), &json!({}));
    wait_for("the agent's end", || (lab.count(&ended, "agent.exited") == 1).then_some(()));
    let lives = lab.run("say two\nbarrier here");
    lab.reach("here");
    let living = holder_of(&lab, &lives);
    // One of a session that nobody here knows, as a restored backup may leave it.
    let foreign = "h_01hzzzzzzzzzzzzzzzzzzzzzzz".to_owned();
    let directory = lab.home().join("holders").join(&foreign);
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("precious"), "work").expect("written");
    assert_eq!(holders(&lab), [dead.clone(), living.clone(), foreign.clone()].into());
    lab.restart();
    // First its name goes, then the rest of it.
    wait_for("the dead one to go", || (!holders(&lab).iter().any(|name| name.contains(&dead))).then_some(()));
    assert_eq!(holders(&lab), [living, foreign].into());
    assert_eq!(lab.said(&ended), said);
    lab.pass("here");
    lab.wait_end(&lives);
    assert_eq!(lab.count(&lives, "run.interrupted"), 0);
}
