//! The database of tasks taken away, damaged and replaced: tasks go on, and it catches up to what the stream says.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Everything that the database says: rows, and their histories.
fn rows(lab: &Lab) -> Vec<Value> {
    let list = lab.get("/api/tasks?limit=500")["tasks"].as_array().expect("a list").clone();
    list.into_iter()
        .map(|mut row| {
            let id = row["id"].as_str().expect("an id").to_owned();
            row["history"] = lab.get(&format!("/api/tasks/{id}/transitions"));
            row
        })
        .collect()
}

fn work(lab: &Lab, count: usize) {
    let made: Vec<String> =
        (0..count).map(|n| lab.add_task(&lab.task_in(&format!("t{n}"), "say done"))).collect();
    made.iter().for_each(|id| drop(lab.wait_task(id, "completed")));
}

// I2
#[test]
fn a_database_that_is_gone_damaged_or_old_catches_up() {
    let mut lab = Lab::new();
    let file = |lab: &Lab, end: &str| lab.home().join(format!("tasks.db{end}"));
    let remove = |lab: &Lab| {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(file(lab, end));
        }
    };
    work(&lab, 3);
    rows(&lab);
    lab.leave();
    let backup = std::fs::read(file(&lab, "")).expect("a database");
    lab.start();
    work(&lab, 4);
    let waiting = lab.add_task(&lab.task_in("w", "ask may I\nsay yes"));
    lab.wait_task(&waiting, "waiting_input");
    let whole = rows(&lab);
    assert_eq!(whole.len(), 8);
    for (what, bytes) in [
        ("deleted", None),
        ("yesterday's", Some(backup.clone())),
        ("empty", Some(Vec::new())),
        ("noise", Some(b"\x00\xffno database".repeat(1_000))),
        ("half", Some(backup[..backup.len() / 2].to_vec())),
    ] {
        lab.kill();
        remove(&lab);
        if let Some(bytes) = bytes {
            std::fs::write(file(&lab, ""), bytes).expect("written");
        }
        lab.start();
        let again = wait_for("the database", || {
            let list = lab.try_ask("GET", "/api/tasks?limit=500", "", &Value::Null)?;
            (list.status == 200).then(|| rows(&lab))
        });
        assert_eq!(again, whole, "{what}");
    }
    let kept = std::fs::read_dir(lab.home()).expect("a home").flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).count();
    assert!(kept >= 1, "what was damaged is kept");
}

// I2: rows are for questions; whoever works needs none.
#[test]
fn without_a_database_tasks_go_on_and_only_questions_are_refused() {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("path = \"/dev/null/nowhere/tasks.db\"\n");
    lab.start();
    work(&lab, 2);
    let refused = lab.ask("GET", "/api/tasks", &Value::Null);
    assert_eq!(refused.code(), (503, "tasks_db_unavailable"), "{}", refused.body);
    assert_eq!(lab.ask("GET", "/api/tasks/stats", &Value::Null).code().0, 503);
    let id = lab.add_task(&lab.task_in("a", "ask may I\nsay yes"));
    lab.wait_task(&id, "waiting_input");
    assert_eq!(lab.get("/api/tasks/active")["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(lab.ask("POST", &format!("/api/tasks/{id}/cancel"), &json!({})).status, 200);
    lab.wait_task(&id, "cancelled");
    // With one again, it has everything.
    lab.leave();
    lab.configure_tasks("");
    lab.start();
    assert_eq!(rows(&lab).len(), 3);
}
