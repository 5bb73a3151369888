//! Changes of a session: nobody's is lost, and what they allow happens at once.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::lab::Lab;

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
