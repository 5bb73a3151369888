//! Runs of pipelines as tasks, with the sessions of their steps as parts of them: how lists, commands and the database show that.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

impl Lab {
    fn tasks(&self, query: &str) -> Vec<Value> {
        let asked = self.get(&format!("/api/tasks?{query}"));
        asked["tasks"].as_array().expect("tasks").clone()
    }

    /// The only pipeline run, as the task that it is, once it stands there.
    fn run_as_task(&self, status: &str) -> Value {
        wait_for("the run as a task", || {
            let tasks = self.tasks("kind=pipeline");
            tasks.into_iter().next().filter(|task| task["status"] == status)
        })
    }
}

#[test]
fn a_run_and_its_steps_are_shown_as_a_tree() {
    let mut lab = Lab::new();
    let hash = lab.demo_project("barrier working\nsay done");
    lab.pipeline(&["run", "--detach", "--trust", &hash]).exits(0);
    lab.reach("working");
    let run = lab.only_run();
    let (name, session) = (&run["run_id"], &run["pending"]["session_id"]);
    let task = lab.run_as_task("running");
    let id = task["id"].as_str().expect("an id");
    assert_eq!((&task["pipeline_run"], &task["agent"]), (name, &json!("pipeline")));
    assert!(task["title"].as_str().is_some_and(|title| title.starts_with("T-1: ")), "{task:#}");
    let parts = lab.tasks(&format!("parent={id}"));
    assert_eq!((parts.len(), &parts[0]["session_id"], &parts[0]["kind"]), (1, session, &json!("run")));
    let shown = lab.show(session.as_str().expect("a session"));
    let parent = json!({"run_id": name, "task_id": id, "step_id": "implement-1"});
    assert_eq!(shown["parent"], parent);
    // What goes on, from memory.
    let active = lab.get("/api/tasks/active")["tasks"].clone();
    assert_eq!((&active[0]["id"], &active[1]["parent_id"]), (&json!(id), &json!(id)), "{active:#}");

    let name = name.as_str().expect("a name");
    let listed = lab.ran(&["task", "ls"]).exits(0).shows("T-1: ").shows("pipeline");
    assert!(listed.out.lines().any(|line| line.starts_with("  ") && line.contains("running")), "{listed:?}");
    let listed = lab.ran(&["ps"]).exits(0).shows(name);
    let below = listed.out.lines().skip_while(|line| !line.contains(name)).nth(1);
    assert!(below.is_some_and(|line| line.starts_with("  ")), "{listed:?}");
    lab.ran(&["task", "show", id]).exits(0).shows(&format!("pipeline show {name}")).shows("implement-1");

    // Rows come back from the ledgers and logs, and say what those say.
    lab.kill();
    fs::remove_file(lab.home().join("tasks.db")).expect("removed");
    lab.start();
    let again = lab.run_as_task("running");
    assert_eq!((&again["id"], &again["created_at"]), (&task["id"], &task["created_at"]));
    wait_for("its part", || Some(lab.tasks(&format!("parent={id}"))).filter(|parts| parts.len() == 1));

    // Whoever ends the task ends the run, and the agent of its step.
    lab.ran(&["task", "cancel", id, "--reason", "not wanted"]).exits(0);
    wait_for("the end of the agent", || lab.living_agents().is_empty().then_some(()));
    let ended = lab.run_as_task("cancelled");
    assert_eq!((&ended["reason"], &lab.only_run()["status"]), (&json!("not wanted"), &json!("aborted")));
    let retried = lab.ask("POST", &format!("/api/tasks/{id}/retry"), &json!({}));
    assert_eq!(retried.body["error"]["code"], "task_state_conflict", "{}", retried.body);
    wait_for("its part", || lab.tasks(&format!("parent={id}&status=cancelled")).pop());
    lab.ran(&["task", "history", id]).exits(0).shows("not wanted").shows("user:");
    lab.leave();
    lab.ran(&["doctor"]).exits(0);
}
