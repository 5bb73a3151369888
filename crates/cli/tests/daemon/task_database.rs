//! The database of tasks taken away, damaged and replaced: tasks go on, and it catches up to what the stream says.

use std::time::Duration;

use rekindle_lab::look_for;
use rekindle_taskdb::{Sql as _, Sqlite};
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE};

/// Everything that the database says: rows, and their histories, but for what every start notes of a task that goes on.
pub(crate) fn rows(lab: &Lab) -> Vec<Value> {
    let list = lab.get("/api/tasks?limit=500")["tasks"].as_array().expect("a list").clone();
    list.into_iter()
        .map(|mut row| {
            let id = row["id"].as_str().expect("an id").to_owned();
            lab.task_history(&id);
            let history = lab.get(&format!("/api/tasks/{id}/transitions"))["transitions"].clone();
            let is_note = |line: &Value| line["actor"] == "recovery" && line["from"] == line["to"];
            let mut lines: Vec<Value> = history.as_array().expect("a list").clone();
            if lines.iter().any(is_note) {
                lines.retain(|line| !is_note(line));
                row["updated_at"] = lines.last().expect("a line")["at"].clone();
            }
            lines.iter_mut().for_each(|line| line["n"] = Value::Null);
            row["history"] = Value::Array(lines);
            row
        })
        .collect()
}

/// Has so many tasks done, each in a directory of its own.
pub(crate) fn work(lab: &Lab, count: usize) {
    let made: Vec<String> =
        (0..count).map(|n| lab.add_task(&lab.task_in(&format!("t{n}"), "say done"))).collect();
    for id in made {
        let task = lab.wait_task(&id, "completed");
        // Until what it left behind is recorded, too.
        lab.wait_end(task["session_id"].as_str().expect("a session"));
    }
}

/// Waits until the database says this.
pub(crate) fn wait_rows(lab: &Lab, wanted: &[Value], what: &str) {
    let mut found = Vec::new();
    let is_there = look_for(PATIENCE, Duration::from_millis(20), || {
        let list = lab.try_ask("GET", "/api/tasks?limit=500", "", &Value::Null)?;
        found = if list.status == 200 { rows(lab) } else { Vec::new() };
        (found == wanted).then_some(())
    });
    if is_there.is_none() {
        assert_eq!(found.len(), wanted.len(), "{what}");
        found.iter().zip(wanted).for_each(|(found, wanted)| assert_eq!(found, wanted, "{what}"));
    }
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
    // Runs that somebody begins by hand are listed beside tasks.
    let by_hand = lab.run("append by-hand.txt one\nsay by hand");
    lab.wait_end(&by_hand);
    lab.post(&format!("/api/sessions/{by_hand}/messages"), &json!({"content": "say more"}));
    lab.wait_end(&by_hand);
    let waiting = lab.add_task(&lab.task_in("w", "ask may I\nsay yes"));
    lab.wait_task(&waiting, "waiting_input");
    let whole = rows(&lab);
    assert_eq!(whole.len(), 10);
    let runs: Vec<&Value> = whole.iter().filter(|row| row["kind"] == "run").collect();
    let words: Vec<&str> = runs.iter().filter_map(|row| row["result"].as_str()).collect();
    assert_eq!(words, ["more", "by hand"], "{runs:?}");
    assert_eq!(runs[1]["files_touched"]["total"], 1, "{runs:?}");
    assert!(whole.iter().all(|row| row["progress"]["turns"] == 1), "{whole:?}");
    for (what, bytes) in [
        ("deleted", None),
        ("yesterday's", Some(backup.clone())),
        ("empty", Some(Vec::new())),
        ("noise", Some(b"\x00\xffno database".repeat(1_000))),
        ("half", Some(backup[..backup.len() / 2].to_vec())),
        ("half noise", Some([&backup[..backup.len() / 2], &vec![0xff; backup.len() / 2]].concat())),
    ] {
        lab.kill();
        remove(&lab);
        if let Some(bytes) = bytes {
            std::fs::write(file(&lab, ""), bytes).expect("written");
        }
        lab.start();
        wait_rows(&lab, &whole, what);
    }
    let kept = std::fs::read_dir(lab.home()).expect("a home").flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).count();
    assert!(kept >= 1, "what was damaged is kept");
    // What was said in a session goes with it, also from the rows.
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{by_hand}?force=1"), &Value::Null).status, 204);
    let left: Vec<Value> = whole.into_iter().filter(|row| row["session_id"] != by_hand.as_str()).collect();
    assert_eq!(left.len(), 8);
    wait_rows(&lab, &left, "removed");
}

/// Returns what the doctor says of the rows.
pub(crate) fn findings(lab: &Lab, arguments: &[&str]) -> (Value, Vec<String>) {
    let output = lab.configured(&[&["doctor", "--json"], arguments].concat()).output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = report["findings"].as_array().expect("findings");
    let of_rows =
        all.iter().filter(|found| found["code"].as_str().is_some_and(|code| code.starts_with("task_rows")));
    let told = of_rows.map(|found| format!("{}: {}", found["code"], found["what"])).collect();
    (report, told)
}

// I2
#[test]
fn the_doctor_finds_rows_that_are_wrong_and_writes_them_anew() {
    let mut lab = Lab::new();
    work(&lab, 2);
    let by_hand = lab.run("say by hand");
    lab.wait_end(&by_hand);
    let waiting = lab.add_task(&lab.task_in("w", "ask may I\nsay yes"));
    lab.wait_task(&waiting, "waiting_input");
    let whole = rows(&lab);
    let file = lab.home().join("tasks.db");
    assert_eq!(findings(&lab, &[]).1, [""; 0], "a daemon has them");
    // Killed, so that what it wrote last is beside the file.
    lab.kill();
    assert_eq!(findings(&lab, &[]).1, [""; 0]);
    let change = |change: &str| {
        let changed = Sqlite::open(&file).and_then(|mut sql| sql.run(change));
        changed.expect("changed");
    };
    change("UPDATE tasks SET status = 'failed' WHERE status = 'completed'");
    let told = findings(&lab, &[]).1;
    assert!(
        told.len() == 1 && told[0].contains("task_rows_differ") && told[0].contains("of 3 tasks"),
        "{told:?}"
    );
    let (report, told) = findings(&lab, &["--repair", "--dry-run"]);
    let rewritten = |report: &Value| {
        let done = report["done"].as_array().expect("what was done");
        done.iter().any(|done| done["action"] == "rewritten" && done["error"].is_null())
    };
    assert!(told.len() == 1 && rewritten(&report), "{report}");
    // I3: whoever repairs dies before it, and behind it.
    for (place, left) in [("repair.before_rows", 1), ("repair.rows_written", 0)] {
        let mut repair = lab.configured(&["doctor", "--repair"]);
        let died = repair.env("REKINDLE_CRASH_AT", place).output().expect("it runs");
        assert!(!died.status.success(), "{place}");
        assert_eq!(findings(&lab, &[]).1.len(), left, "{place}");
    }
    change("UPDATE tasks SET status = 'failed' WHERE status = 'completed'");
    let (report, told) = findings(&lab, &["--repair"]);
    assert!(told.is_empty() && rewritten(&report), "{report}");
    lab.start();
    wait_rows(&lab, &whole, "repaired");
    // One that is none is told of, and left to the next start.
    lab.leave();
    std::fs::write(&file, b"no database".repeat(1_000)).expect("written");
    let told = findings(&lab, &["--repair"]).1;
    assert!(told.len() == 1 && told[0].contains("task_rows_unreadable"), "{told:?}");
    lab.start();
    wait_rows(&lab, &whole, "begun anew");
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

#[test]
fn rows_of_tasks_that_ended_long_ago_go_and_a_run_is_no_task_of_the_queue() {
    let mut lab = Lab::new();
    work(&lab, 2);
    let session = lab.run("say by hand");
    lab.wait_end(&session);
    let listed = lab.get(&format!("/api/tasks?session={session}"));
    let run = listed["tasks"][0].clone();
    assert_eq!((&run["kind"], &run["status"]), (&json!("run"), &json!("completed")), "{listed}");
    let id = run["id"].as_str().expect("an id");
    assert_eq!(lab.task(id), run);
    for what in ["cancel", "retry"] {
        let refused = lab.ask("POST", &format!("/api/tasks/{id}/{what}"), &json!({}));
        assert_eq!(refused.code().1, "task_state_conflict");
        assert!(refused.body["error"]["message"].as_str().is_some_and(|why| why.contains(&session)));
    }
    let ended = lab.get("/api/tasks?status=completed");
    assert_eq!(ended["tasks"].as_array().map(Vec::len), Some(3), "{ended}");
    lab.leave();
    lab.configure_tasks("keep = \"1s\"\n");
    lab.start();
    crate::lab::wait_for("the rows to go", || {
        let list = lab.try_get("/api/tasks")?;
        list["tasks"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
    // Their histories are kept for longer, and of a task the log knows all.
    assert_eq!(lab.task_history(id), ["running user", "completed agent"]);
    let tasks = lab.get("/api/tasks/stats");
    assert_eq!(tasks["statuses"], json!({}), "{tasks}");
}
