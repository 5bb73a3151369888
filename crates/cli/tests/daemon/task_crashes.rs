//! Tasks through the death of everything, again and again: none is lost, none runs twice at once, each is where the evidence says.

use std::collections::BTreeMap;
use std::time::Duration;

use rekindle_lab::tasks_log;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};

/// Tasks of a campaign, and deaths of the daemon, or of everything.
const TASKS: usize = 40;
const DEATHS: usize = 50;

/// Waits until so many more records of tasks are there than before, or nothing is left to do.
fn await_records(lab: &Lab, before: usize, more: usize) {
    let look = || {
        let tasks = audit(lab);
        let done = tasks.len() == TASKS && tasks.values().all(|(_, status)| is_ended(status));
        (done || records(lab) >= before + more).then_some(())
    };
    let found = rekindle_lab::look_for(PATIENCE, Duration::from_millis(5), look);
    found.unwrap_or_else(|| panic!("nothing happens: {}", lab.get("/api/tasks/active")));
}

fn records(lab: &Lab) -> usize {
    tasks_log(&lab.home()).expect("a log").lines().count()
}

/// Returns what the stream says of each task: its claims, and how it stands.
fn audit(lab: &Lab) -> BTreeMap<String, (usize, String)> {
    let log = tasks_log(&lab.home()).expect("a log");
    let mut tasks: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (line, seq) in log.lines().zip(1..) {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert_eq!(record["seq"], seq, "without a gap");
        let task = tasks.entry(record["task_id"].as_str().expect("a task").to_owned()).or_default();
        match record["kind"].as_str() {
            Some("task.created" | "task.requeued" | "task.retried") => task.1 = "pending".into(),
            Some("task.claimed") => {
                assert_eq!(task.1, "pending", "{record}");
                *task = (task.0 + 1, "running".into());
            }
            Some("task.ended") => {
                assert!(!is_ended(&task.1), "ended once: {record}");
                task.1 = record["status"].as_str().unwrap_or_default().into();
            }
            _ => {}
        }
    }
    tasks
}

fn is_ended(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// A task that leaves a line in a file each time it is begun, and another when it is done.
fn marked(lab: &Lab, n: usize) -> Value {
    let mut task = lab.task_in(
        &format!("t{n}"),
        &format!("append begun.txt {n}\nsleep 40ms\nappend done.txt {n}\nsay done"),
    );
    task["on_uncertain"] = json!("continue");
    task
}

fn lines(lab: &Lab, n: usize, file: &str) -> usize {
    let path = lab.path("work").join(format!("t{n}")).join(file);
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

// I1, I4, I5
#[test]
fn a_daemon_that_dies_again_and_again_begins_each_task_once() {
    let mut lab = Lab::new();
    let body = json!({"tasks": (0..TASKS).map(|n| marked(&lab, n)).collect::<Vec<_>>()});
    lab.post("/api/tasks", &body);
    for death in 0..DEATHS {
        lab.kill();
        assert_eq!(audit(&lab).len(), TASKS, "none is lost");
        let before = records(&lab);
        lab.start();
        // Some lives get something done, and some nothing.
        await_records(&lab, before, death % 4);
    }
    wait_for("the end", || audit(&lab).values().all(|(_, status)| is_ended(status)).then_some(()));
    for (id, (claims, status)) in audit(&lab) {
        assert_eq!((claims, status.as_str()), (1, "completed"), "{id}");
    }
    for n in 0..TASKS {
        assert_eq!((lines(&lab, n, "begun.txt"), lines(&lab, n, "done.txt")), (1, 1), "task {n}");
    }
    // The database has caught up: the same as the stream.
    let rows = lab.get("/api/tasks?limit=500")["tasks"].as_array().expect("a list").clone();
    assert!(rows.len() == TASKS && rows.iter().all(|row| row["status"] == "completed"), "{rows:?}");
}

// I1, I12, I14
#[test]
fn whatever_dies_with_it_every_task_is_where_the_evidence_says() {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("limit = 4\n");
    lab.start();
    let body = json!({"tasks": (0..TASKS).map(|n| marked(&lab, n)).collect::<Vec<_>>()});
    let ids: Vec<String> = lab.post("/api/tasks", &body)["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|task| task["id"].as_str().map(str::to_owned))
        .collect();
    let mut before = records(&lab);
    for death in 0..DEATHS {
        await_records(&lab, before, death % 5);
        lab.kill();
        lab.kill_holders();
        if death % 2 == 1 {
            lab.as_if_rebooted();
        }
        assert_eq!(audit(&lab).len(), TASKS, "none is lost");
        before = records(&lab);
        lab.start();
    }
    wait_for("the end", || audit(&lab).values().all(|(_, status)| is_ended(status)).then_some(()));
    for id in &ids {
        let task = lab.task(id);
        let words = lab.task_history(id);
        let told = format!("{task} {words:?}");
        match task["status"].as_str() {
            Some("completed") => {
                assert_eq!(words.last().map(String::as_str), Some("completed agent"), "{told}")
            }
            // It was cut three times, which is as often as it may.
            Some("failed") => {
                assert!(task["reason"].as_str().is_some_and(|why| why.contains("interrupted")), "{told}");
                assert_eq!(task["attempt"], 3, "{told}");
            }
            _ => panic!("{told}"),
        }
        let interrupted = words.iter().filter(|line| *line == "running recovery").count();
        assert!(task["attempt"].as_u64().unwrap_or(0) as usize <= 1 + interrupted, "{told}");
    }
}

// I11: a command that ended while no daemon was there to see it begin has begun: its exit code says so.
#[test]
fn a_command_that_ended_while_no_daemon_was_there_is_not_run_again() {
    for place in ["adopt.after_start", "adopt.before_started"] {
        let mut lab = Lab::without_daemon();
        lab.start_to_die(place);
        let mut body = lab.task_in("t0", "x");
        // It waits for nothing: nobody is there to give it its prompt.
        let command = "echo ran >> begun.txt; exit 1";
        body["agent"] = json!({"profile": "exec", "command": ["sh", "-c", command]});
        let _ = lab.try_ask("POST", "/api/tasks", "", &body);
        lab.died();
        wait_for("the end of the command", || (lines(&lab, 0, "begun.txt") == 1).then_some(()));
        lab.start();
        let id = audit(&lab).into_keys().next().expect("a task");
        let ended = wait_for("the end", || {
            Some(lab.task(&id)).filter(|task| task["status"] == "failed" || task["attempt"] != 1)
        });
        assert_eq!((&ended["status"], &ended["attempt"]), (&json!("failed"), &json!(1)), "{place}: {ended}");
        assert_eq!(lines(&lab, 0, "begun.txt"), 1, "{place}");
    }
}

// I13: whoever dies between two steps of a cancel, or of a claim, leaves it to the next.
#[test]
fn dying_in_the_middle_of_a_claim_or_a_cancel_leaves_all_or_nothing() {
    for place in ["task.before_claim", "task.after_claim"] {
        let mut lab = Lab::without_daemon();
        lab.start_to_die(place);
        let body = marked(&lab, 0);
        // It may die before the answer is heard.
        let _ = lab.try_ask("POST", "/api/tasks", "", &body);
        lab.died();
        let claims: usize = audit(&lab).values().map(|(claims, _)| claims).sum();
        assert!(claims <= usize::from(place == "task.after_claim"), "{place}");
        lab.start();
        wait_for("the end", || audit(&lab).values().all(|(_, status)| is_ended(status)).then_some(()));
        let told: Vec<_> = audit(&lab).into_values().collect();
        assert_eq!(told, [(1, "completed".to_owned())], "{place}");
        assert_eq!(lines(&lab, 0, "begun.txt"), 1, "{place}");
    }
    for place in ["task.before_cancel", "task.after_cancel"] {
        let mut lab = Lab::new();
        let id = lab.add_task(&lab.task_in("a", "barrier here\nsay never"));
        lab.reach("here");
        lab.kill();
        lab.start_to_die(place);
        let _ = lab.try_ask("POST", &format!("/api/tasks/{id}/cancel"), "", &json!({}));
        lab.died();
        lab.start();
        match place {
            "task.before_cancel" => {
                assert_eq!(lab.task(&id)["status"], "running");
                lab.pass("here");
                lab.wait_task(&id, "completed");
            }
            _ => drop(lab.wait_task(&id, "cancelled")),
        }
    }
}
