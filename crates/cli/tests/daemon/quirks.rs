//! What some agents do that others do not, told by their own names, where it changes what has to be recorded.

use serde_json::json;

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

const SCRIPT: &str =
    "append done one\nbarrier first\nappend done two\nbarrier second\nappend done three\nsay finished";

/// Kills an agent in its turn and the next one in its load, in which it works; returns how often runs began and were cut.
fn killed_while_it_loads(lab: &Lab, name: &str) -> (usize, usize) {
    let mut body = lab.session(SCRIPT);
    body["agent"]["command"] = json!(lab.demo(&["--load-continues", "--name", name]));
    body["on_uncertain"] = json!("continue");
    let id = lab.create(&body);
    lab.reach("first");
    kill(lab.agents()[0]);
    lab.pass("first");
    lab.reach("second");
    kill(lab.agents()[1]);
    lab.pass("second");
    wait_for("the end", || (lab.count(&id, "run.completed") == 1).then_some(()));
    assert_eq!(lab.agents().len(), 3);
    (lab.count(&id, "run.started"), lab.count(&id, "run.interrupted"))
}

// I5, I6: what a load has done may not be done again as if nothing had been.
#[test]
fn a_run_whose_agent_works_while_it_loads_has_reached_it_with_the_load() {
    assert_eq!(killed_while_it_loads(&Lab::new(), "@mistralai/mistral-vibe"), (3, 2));
}

// I5: what is seen to be done inside a load has reached the agent, whoever it is.
#[test]
fn a_run_whose_agent_is_seen_to_work_while_it_loads_has_reached_it_too() {
    assert_eq!(killed_while_it_loads(&Lab::new(), "something else"), (3, 2));
}

// I5: of one that is known for nothing, a load in which nothing is done is no beginning.
#[test]
fn a_run_whose_agent_died_before_its_prompt_goes_on_as_the_same_run() {
    let lab = Lab::new();
    let mut body = lab.session(SCRIPT);
    body["agent"]["command"] = json!(lab.demo(&["--load-hangs"]));
    body["on_uncertain"] = json!("continue");
    let id = lab.create(&body);
    lab.reach("first");
    kill(lab.agents()[0]);
    let loads = || lab.record().iter().filter(|line| line.contains("session/load")).count();
    wait_for("a load", || (loads() == 1).then_some(()));
    kill(lab.agents()[1]);
    wait_for("another load", || (loads() == 2).then_some(()));
    assert_eq!((lab.count(&id, "run.started"), lab.count(&id, "run.interrupted")), (2, 1));
}

// I5: an agent that would begin with the step that was cut is given a new session, and told which step that was.
#[test]
fn a_session_whose_agent_repeats_a_cut_step_is_not_loaded() {
    let lab = Lab::new();
    let mut body = lab.session("run echo began >> effect; sleep 300");
    body["agent"]["command"] = json!(lab.demo(&["--name", "OpenHands CLI ACP Agent"]));
    body["on_uncertain"] = json!("continue");
    let id = lab.create(&body);
    wait_for("the tool call", || (lab.count(&id, "tool.update") == 1).then_some(()));
    kill(lab.agents()[0]);
    wait_for("the continuation", || (lab.prompted("Resume Context") == 1).then_some(()));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.record().iter().filter(|line| line.contains("session/load")).count(), 0);
    assert_eq!(lab.prompted("- echo began >> effect; sleep 300"), 1, "{:?}", lab.record());
}
