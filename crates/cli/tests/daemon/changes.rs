//! Changes of a session: nobody's is lost, and what they allow happens at once.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

#[track_caller]
fn change(lab: &Lab, id: &str, change: &Value) {
    let reply = lab.ask("PATCH", &format!("/api/sessions/{id}"), change);
    assert_eq!(reply.status, 200, "{change}: {}", reply.body);
}

// I1: each was answered as done.
#[test]
fn of_changes_that_come_at_once_none_is_lost() {
    let lab = Lab::new();
    let mut body = lab.session("");
    body.as_object_mut().expect("an object").remove("prompt");
    for round in 0..20 {
        let id = lab.create(&body);
        let changes =
            [json!({"resume": "never"}), json!({"on_uncertain": "continue"}), json!({"title": "new"})];
        let all_here = Barrier::new(changes.len());
        std::thread::scope(|scope| {
            for one in &changes {
                scope.spawn(|| {
                    all_here.wait();
                    change(&lab, &id, one);
                });
            }
        });
        let log = lab.log(&id);
        let last = log.iter().rfind(|record| record["options"]["resume"].is_string()).expect("options");
        let options = (&last["options"]["resume"], &last["options"]["on_uncertain"]);
        assert_eq!(options, (&json!("never"), &json!("continue")), "round {round}: {log:?}");
        assert_eq!(lab.show(&id)["title"], "new");
    }
}

/// Makes a session whose agent is killed in the middle of its turn, and waits until it is known why it does not go on.
fn cut(lab: &Lab, script: &str, resume: &str, why: &str) -> String {
    let mut body = lab.session(script);
    body["resume"] = json!(resume);
    let before = lab.agents().len();
    let id = lab.create(&body);
    wait_for("its turn", || (lab.count(&id, "tool.call") == 1 || lab.is_reached("here")).then_some(()));
    kill(lab.agents()[before]);
    held(lab, &id, why);
    id
}

#[track_caller]
fn held(lab: &Lab, id: &str, why: &str) {
    wait_for(why, || lab.show(id)["held"].as_str()?.contains(why).then_some(()));
}

// I8: nobody has to wait for a sweep.
#[test]
fn a_session_that_may_go_on_by_a_change_does_so_at_once() {
    let lab = Lab::new();
    let uncertain = cut(&lab, "run sleep 300\nsay after", "auto", "tool calls may or may not");
    change(&lab, &uncertain, &json!({"on_uncertain": "continue"}));
    wait_for("its continuation", || (lab.count(&uncertain, "run.started") == 2).then_some(()));
    assert_eq!(lab.wait_end(&uncertain), "completed");
    let asks = cut(&lab, "say before\nbarrier here\nsay after", "ask", "waits for your decision");
    change(&lab, &asks, &json!({"resume": "never"}));
    held(&lab, &asks, "does not continue automatically");
    assert_eq!((lab.status(&asks).as_str(), lab.count(&asks, "run.started")), ("interrupted_agent", 1));
    change(&lab, &asks, &json!({"resume": "auto"}));
    wait_for("its continuation", || (lab.count(&asks, "run.started") == 2).then_some(()));
    wait_for("nothing to hold it", || lab.show(&asks)["held"].is_null().then_some(()));
    assert_eq!(lab.wait_end(&asks), "completed");
}
