//! Commands as agents: whatever they do, they do once, and their end is the run's, whether they wait for their prompt or not.

use serde_json::json;

use crate::lab::Lab;

fn run(lab: &Lab, script: &str) -> String {
    let command = ["sh", "-c", script];
    let mut body = lab.session("do it");
    body["agent"] = json!({"profile": "exec", "command": command});
    body["resume"] = json!("never");
    lab.create(&body)
}

// I5, I6: a command that is over before its prompt comes has run all the same.
#[test]
fn a_command_that_does_not_wait_for_its_prompt_runs_once() {
    let lab = Lab::new();
    let ran = lab.path("ran");
    for (number, (end, kind, status)) in [
        ("true", "run.completed", "idle"),
        ("exit 3", "run.failed", "idle"),
        ("kill -9 $$", "run.interrupted", "interrupted_agent"),
    ]
    .into_iter()
    .cycle()
    .take(12)
    .enumerate()
    {
        let id = run(&lab, &format!("echo {number} >> {}; echo hello; {end}", ran.display()));
        lab.wait_status(&id, status);
        assert_eq!((lab.count(&id, kind), lab.count(&id, "agent.launching")), (1, 1), "{:?}", lab.log(&id));
        assert_eq!(lab.said(&id).trim(), "hello");
    }
    let ran = std::fs::read_to_string(ran).expect("they ran");
    assert_eq!(ran, (0..12).map(|number| format!("{number}\n")).collect::<String>());
}
