//! Runs of pipelines as tasks, with the sessions of their steps as parts of them: how lists, commands and the database show that.

use std::fs;

use serde_json::{Value, json};

use crate::hook_receiver::Receiver;
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
    let nested = lab.ran(&["--json", "task", "show", name]).exits(0).json();
    assert_eq!((&nested["id"], nested["steps"].as_array().map(Vec::len)), (&json!(id), Some(1)));
    assert_eq!((&nested["steps"][0]["id"], &nested["steps"][0]["session_id"]), (&parts[0]["id"], session));
    assert_eq!(lab.get(&format!("/api/tasks/{id}")).get("steps"), None, "the interface lists them");

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

/// A lab in which one task or step runs at a time, with a second project beside the first.
fn one_at_a_time() -> Lab {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("limit = 1\n");
    lab.start();
    lab
}

#[test]
fn steps_wait_for_their_turn_among_tasks() {
    let lab = one_at_a_time();
    let hash = lab.demo_project("barrier first\nsay done");
    lab.pipeline(&["run", "--detach", "--trust", &hash]).exits(0);
    lab.reach("first");
    let first = lab.only_run()["run_id"].clone();
    // Another run in another directory, and a task in a third: both wait, and say why.
    let other = lab.path("other");
    fs::create_dir(&other).expect("made");
    let text = fs::read_to_string(lab.path("work/rekindle.toml")).expect("written");
    let text = text.replace("barrier first", "barrier second");
    let mut body = json!({"working_dir": other, "tasks": ["T-1"], "budget": {"wall_s": 3600},
        "config": {"path": other.join("rekindle.toml"), "text": text}});
    body["trust"] = lab.ask("POST", "/api/pipelines", &body).body["error"]["advice"]["hash"].clone();
    let second = lab.post("/api/pipelines", &body)["pipelines"][0]["run_id"].clone();
    let path = format!("/api/pipelines/{}", second.as_str().expect("a name"));
    let waits = wait_for("a place", || Some(lab.get(&path)).filter(|run| run["pending"]["why"] == "place"));
    assert_eq!(waits["budget"]["wall_s"], 3600);
    let why = "the limit of running tasks is reached";
    wait_for("why", || Some(lab.get(&path)).filter(|run| run["pending"]["detail"] == why));
    lab.ran(&["task", "ls"]).exits(0).shows(why);
    lab.ran(&["pipeline", "show", second.as_str().expect("a name")]).exits(0).shows(why);
    let third = lab.path("third");
    fs::create_dir(&third).expect("made");
    let task = json!({"prompt": "barrier third", "working_dir": third, "agent": {"profile": "acp", "command": lab.demo(&[])}});
    let task = lab.post("/api/tasks", &task)["id"].as_str().expect("an id").to_owned();
    let shown = |id: &str| lab.get(&format!("/api/tasks/{id}"));
    wait_for("its turn", || Some(shown(&task)).filter(|task| task["waits_for"] == why));
    // One after the other, in the order in which they came.
    lab.pass("first");
    lab.reach("second");
    assert!(!lab.is_reached("third"));
    assert_eq!(lab.living_agents().len(), 1);
    lab.pass("second");
    lab.reach("third");
    let ends =
        |run: &Value| lab.get(&format!("/api/pipelines/{}", run.as_str().expect("a name")))["status"].clone();
    wait_for("their ends", || (ends(&first) == "completed" && ends(&second) == "completed").then_some(()));
    lab.pass("third");
}

#[test]
fn a_run_ends_when_its_budget_is_used_up() {
    let lab = Lab::new();
    let hash = lab.demo_project("barrier working\nsay done");
    lab.pipeline(&["run", "--detach", "--trust", &hash, "--max-time", "1s"]).exits(0);
    lab.reach("working");
    let run = wait_for("its end", || Some(lab.only_run()).filter(|run| run["status"] == "failed"));
    assert_eq!(
        (&run["reason"], &run["stages"][0]["outcome"]),
        (&json!("budget: wall time"), &json!("failed"))
    );
    wait_for("the end of the agent", || lab.living_agents().is_empty().then_some(()));
    assert_eq!(lab.run_as_task("failed")["reason"], "budget: wall time");
    let negative = json!({"working_dir": lab.path("work"), "tasks": ["T-1"], "budget": {"cost": -1.0}});
    assert_eq!(lab.ask("POST", "/api/pipelines", &negative).body["error"]["code"], "invalid_pipeline");
}

/// The daemon dies when it has found what there is to tell, and has not written it down.
#[test]
fn people_elsewhere_are_told_of_runs_and_not_of_their_steps() {
    let receiver = Receiver::start();
    let mut lab = Lab::without_daemon();
    lab.set("HOOK_SECRET", "s3cret-of-the-hook");
    lab.configure(&format!("[notify]\nsettle = \"0s\"\n{}", receiver.section("phone")));
    lab.start_with(&[], &[("REKINDLE_CRASH_AT", "notify.found")]);
    let hash = lab.demo_project("say done");
    lab.pipeline(&["run", "--detach", "--trust", &hash]).exits(0);
    wait_for("the death", || lab.dead().then_some(()));
    lab.start();
    let task = lab.run_as_task("completed");
    receiver.wait_for("completed");
    let told = receiver.bodies();
    assert_eq!((told.len(), &told[0]["task_id"]), (1, &task["id"]), "{told:#?}");
    assert!(told[0]["event_id"].as_str().is_some_and(|event| event.starts_with("pl_")), "{told:#?}");
    let metrics = lab.text("/metrics", "").1;
    assert!(metrics.contains("rekindle_pipelines{state=\"working\"} 0"), "{metrics}");
    assert!(metrics.contains("rekindle_pipeline_steps_total{result=\"cached\"} 0"), "{metrics}");
}
