//! Twenty tasks in every status, through fifty deaths: whoever looks behind one finds each where the evidence says.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};

/// Tasks in each status; deaths of the daemon alone, then of everything.
const EACH: usize = 20;
const DEATHS: usize = 25;

/// The barrier that running tasks wait at.
const BARRIER: &str = "go";

/// Where each task stands.
type Statuses = BTreeMap<String, String>;

/// Asks for twenty tasks, which wait for a person when they are cut; returns their ids.
fn add(lab: &Lab, kind: &str, prompt: &str) -> Vec<String> {
    let task = |n: usize| {
        let mut task = lab.task_in(&format!("{kind}{n}"), prompt);
        task["resume"] = json!("ask");
        task
    };
    let made = lab.post("/api/tasks", &json!({"tasks": (0..EACH).map(task).collect::<Vec<_>>()}));
    let made = made["tasks"].as_array().expect("a list");
    made.iter().map(|task| task["id"].as_str().expect("an id").to_owned()).collect()
}

fn statuses(lab: &Lab) -> Statuses {
    let list = lab.get("/api/tasks?limit=500");
    let word = |task: &Value, name: &str| task[name].as_str().unwrap_or_default().to_owned();
    let tasks = list["tasks"].as_array().expect("a list").iter();
    tasks.map(|task| (word(task, "id"), word(task, "status"))).collect()
}

/// Waits until tasks stand where they should.
#[track_caller]
fn await_statuses(lab: &Lab, when: &str, wanted: impl Fn(&str, &str) -> bool) {
    let others = || {
        let found = statuses(lab);
        found.into_iter().filter(|(id, status)| !wanted(id, status)).map(|(id, _)| id).collect::<Vec<_>>()
    };
    let look = || others().is_empty().then_some(());
    let found = rekindle_lab::look_for(PATIENCE, Duration::from_millis(20), look);
    let told = || others().iter().map(|id| lab.task(id).to_string()).collect::<Vec<_>>();
    assert!(found.is_some(), "{when}: {:#?}", told());
}

// I1, I3, I4, I12
#[test]
fn each_is_found_where_the_evidence_says_whatever_died() {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("limit = 100\n");
    lab.start();
    let at_work = format!("append begun.txt one\nbarrier {BARRIER}\nsay done");
    let groups = [
        ("completed", add(&lab, "completed", "append begun.txt one\nsay done")),
        ("failed", add(&lab, "failed", "append begun.txt one\nrefuse it is impossible")),
        ("running", add(&lab, "running", &at_work)),
        ("waiting_input", add(&lab, "waiting_input", "append begun.txt one\nask may I\nsay done")),
        // Where one that runs works: it has to wait for that.
        ("pending", add(&lab, "running", &at_work)),
        ("cancelled", add(&lab, "cancelled", "append begun.txt one\nask may I")),
    ];
    for (id, n) in groups[5].1.iter().zip(0..) {
        if n % 2 == 0 {
            lab.wait_task(id, "waiting_input");
        }
        lab.post(&format!("/api/tasks/{id}/cancel"), &json!({}));
    }
    let before: Statuses =
        groups.iter().flat_map(|(status, ids)| ids.iter().map(|id| (id.clone(), (*status).into()))).collect();
    await_statuses(&lab, "at first", |id, status| before[id] == status);
    for death in 1..=DEATHS {
        lab.kill();
        lab.start();
        assert_eq!(statuses(&lab), before, "after death {death} of the daemon: its agents keep working");
    }
    for death in 1..=DEATHS {
        lab.kill();
        lab.kill_holders();
        lab.as_if_rebooted();
        lab.start();
        assert_eq!(statuses(&lab).len(), before.len(), "after death {death} of everything: none is lost");
        // What was at work waits for a person; what waited for its directory may begin, and is cut in turn.
        await_statuses(&lab, &format!("after death {death} of everything"), |id, status| {
            match before[id].as_str() {
                "running" => status == "waiting_input",
                "pending" => matches!(status, "pending" | "running" | "waiting_input"),
                same => status == same,
            }
        });
    }
    lab.pass(BARRIER);
    let is_settled = |_: &str, status: &str| !matches!(status, "pending" | "running");
    await_statuses(&lab, "when those at work may end", is_settled);
    for (id, _) in statuses(&lab).iter().filter(|(_, status)| *status == "waiting_input") {
        let session = lab.task(id)["session_id"].as_str().expect("a session").to_owned();
        lab.post(&format!("/api/sessions/{session}/messages"), &json!({"content": "say go on"}));
    }
    await_statuses(&lab, "in the end", |id, status| match before[id].as_str() {
        same @ ("failed" | "cancelled") => status == same,
        _ => status == "completed",
    });
    for (status, ids) in &groups {
        for id in ids {
            let (task, words) = (lab.task(id), lab.task_history(id));
            let begun = words.iter().filter(|line| *line == "running scheduler").count();
            match *status {
                "cancelled" => assert!(begun <= 1, "{task} {words:?}"),
                _ => assert_eq!(begun, 1, "{task} {words:?}"),
            }
            let attempts = if matches!(*status, "running" | "waiting_input") { 2 } else { 1 };
            assert!(*status == "pending" || task["attempt"] == attempts, "{task} {words:?}");
        }
    }
    // Nothing was done twice: where one waited for the directory of another, both did it.
    for (kind, times) in [("completed", 1), ("failed", 1), ("waiting_input", 1), ("running", 2)] {
        for n in 0..EACH {
            let path = lab.path("work").join(format!("{kind}{n}")).join("begun.txt");
            let lines = std::fs::read_to_string(path).expect("a file").lines().count();
            assert_eq!(lines, times, "{kind} {n}");
        }
    }
    wait_for("no task to be active", || {
        lab.get("/api/tasks/active")["tasks"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
}
