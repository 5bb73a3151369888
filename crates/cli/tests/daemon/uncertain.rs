//! Tool calls that were cut: nobody knows whether they had their effect, so they are named, and nothing goes on before
//! someone has looked, unless that was asked for.

use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

/// A command that is in the middle of its work: its first effect is there, its second will never be.
const SCRIPT: &str = "say before\nrun echo half >> effect; sleep 300; echo whole >> effect\nsay after";

/// Begins a tool call and kills its agent in the middle of it.
fn cut_in_a_tool_call(lab: &Lab, more: &Value) -> String {
    let mut body = lab.session(SCRIPT);
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    let id = lab.create(&body);
    let effect = lab.path("work").join("effect");
    wait_for("the first half", || std::fs::read(&effect).is_ok_and(|text| text == b"half\n").then_some(()));
    wait_for("its record", || (lab.count(&id, "tool.call") == 1).then_some(()));
    kill(lab.agents()[0]);
    id
}

// I5, I6
#[test]
fn a_tool_call_that_was_cut_is_named_everywhere_and_nothing_goes_on_before_someone_looked() {
    let mut lab = Lab::new();
    let id = cut_in_a_tool_call(&lab, &json!({}));
    lab.wait_status(&id, "interrupted_agent");
    let held = || lab.show(&id)["held"].as_str()?.contains("tool calls may or may not").then_some(());
    wait_for("why it is held", held);
    // The daemon names it, before and after its death; without one the home does.
    for _ in 0..2 {
        let uncertain = lab.show(&id)["run"]["uncertain"].clone();
        assert_eq!(
            (&uncertain["turn"], uncertain["tool_calls"].as_array().map(Vec::len)),
            (&json!(false), Some(1))
        );
        let call = &uncertain["tool_calls"][0];
        assert!(call["title"].as_str().is_some_and(|title| title.contains("sleep 300")), "{call}");
        assert!(call["tool_call_id"].is_string() && call["kind"] == "execute", "{call}");
        lab.ran(&["status", &id]).exits(0).shows("uncertain echo half").shows("sleep 300").shows("held");
        lab.kill();
        let told = lab.ran(&["status", &id, "--json"]).exits(0).json();
        assert_eq!(told["run"]["uncertain"], uncertain);
        lab.ran(&["status", &id]).exits(0).shows("uncertain echo half");
        lab.start();
    }
    assert_eq!((lab.count(&id, "run.started"), lab.count(&id, "run.interrupted")), (1, 1));
    // Someone looked: the agent is told what is not known, and the list is empty.
    lab.ran(&["resume", &id]).exits(0);
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.show(&id)["run"]["uncertain"], Value::Null);
    let effect = std::fs::read_to_string(lab.path("work").join("effect")).expect("a file");
    assert_eq!(effect, "half\n", "it was not done again");
    let status = lab.ran(&["status", &id]).exits(0);
    assert!(!status.out.contains("uncertain"), "{status:?}");
}

// I5
#[test]
fn whoever_does_not_mind_has_it_continued_and_the_agent_is_told_what_is_not_known() {
    let lab = Lab::new();
    let agent = json!({"profile": "acp", "command": lab.demo(&["--no-load", "--no-resume"])});
    let id = cut_in_a_tool_call(&lab, &json!({"on_uncertain": "continue", "agent": agent}));
    wait_for("the continuation", || (lab.count(&id, "run.started") == 2).then_some(()));
    assert_eq!(lab.wait_end(&id), "completed");
    let told: Vec<String> =
        lab.record().into_iter().filter(|line| line.contains("[Resume Context]")).collect();
    assert!(told.len() == 1 && told[0].contains("sleep 300"), "{told:?}");
}
