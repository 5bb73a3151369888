//! What a session has used: added up over its runs and its agents, each report once.

use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

fn usage(lab: &Lab, id: &str) -> Value {
    lab.show(id)["usage"].clone()
}

#[test]
fn usage_is_added_up_over_prompts_agents_and_daemons() {
    let mut lab = Lab::new();
    let id = lab.run("usage 1000 10 0.25");
    assert_eq!(lab.wait_end(&id), "completed");
    for cost in ["0.5", "0.75"] {
        let body = json!({"content": format!("usage 1000 10 {cost}")});
        lab.post(&format!("/api/sessions/{id}/messages"), &body);
        lab.wait_end(&id);
    }
    let expected = json!({"input_tokens": 3000, "output_tokens": 30, "cost": 0.75,
                          "context": {"used": 1010, "size": 200_000}});
    wait_for("three turns", || (usage(&lab, &id) == expected).then_some(()));
    // Another agent brings the session back, which is told again what was said, and counts from nothing.
    kill(lab.agents()[0]);
    wait_for("the end of the agent", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "usage 500 5 0.125"}));
    lab.wait_end(&id);
    let expected = json!({"input_tokens": 3500, "output_tokens": 35, "cost": 0.875,
                          "context": {"used": 505, "size": 200_000}});
    wait_for("a fourth turn", || (usage(&lab, &id) == expected).then_some(()));
    lab.restart();
    assert_eq!(usage(&lab, &id), expected);
}
