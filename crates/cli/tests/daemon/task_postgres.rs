//! Postgres as the database of tasks, killed and started again: tasks go on, a daemon starts without it, and rows catch up.

use rekindle_testkit::postgres_server::PostgresServer;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::task_database::{findings, rows, wait_rows, work};

/// How often a daemon looks for its database at least, in milliseconds.
const AGAIN: u64 = 100;

/// Nobody is asked for it, and nobody may be told it.
const PASSWORD: &str = "correct-horse";

fn await_lists(lab: &Lab, status: u16) {
    wait_for(&format!("lists to be answered with {status}"), || {
        let list = lab.try_ask("GET", "/api/tasks?limit=500", "", &Value::Null)?;
        (list.status == status).then_some(list)
    });
}

fn assert_only_questions_are_refused(lab: &Lab) {
    for path in ["/api/tasks", "/api/tasks/stats"] {
        let refused = lab.ask("GET", path, &Value::Null);
        assert_eq!(refused.code(), (503, "tasks_db_unavailable"), "{}", refused.body);
        assert!(!refused.body.to_string().contains(PASSWORD), "{}", refused.body);
    }
    work(lab, 2);
}

// I2
#[test]
fn postgres_killed_and_started_again_catches_up() {
    let mut server = PostgresServer::start();
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_TASKS_DB_AGAIN", AGAIN);
    lab.set("TASKS_ADDRESS", format!("{} password={PASSWORD}", server.socket_address()));
    // Two wait all the time, and others go on beside them.
    lab.configure_tasks("limit = 4\nurl = \"env:TASKS_ADDRESS\"\n");
    lab.start();
    work(&lab, 2);
    let [kept, cancelled] = ["kept", "cancelled"].map(|name| {
        let id = lab.add_task(&lab.task_in(name, "ask may I\nsay yes"));
        lab.wait_task(&id, "waiting_input");
        id
    });
    await_lists(&lab, 200);
    let before = rows(&lab);
    assert_eq!(before.len(), 4);

    server.kill();
    await_lists(&lab, 503);
    assert_only_questions_are_refused(&lab);
    assert_eq!(lab.ask("POST", &format!("/api/tasks/{cancelled}/cancel"), &json!({})).status, 200);
    lab.wait_task(&cancelled, "cancelled");

    // A daemon that never saw it starts as any other.
    lab.restart();
    assert_only_questions_are_refused(&lab);
    assert_eq!(lab.get("/api/tasks/active")["tasks"].as_array().map(Vec::len), Some(1));

    server.start_again();
    await_lists(&lab, 200);
    let row = |rows: &[Value], id: &str| rows.iter().find(|row| row["id"] == id).cloned();
    let after = wait_for("the rows", || {
        let rows = rows(&lab);
        rows.iter().all(|row| row["progress"]["turns"] == 1).then_some(rows)
    });
    assert_eq!(after.len(), 8);
    assert_eq!(row(&after, &kept), row(&before, &kept), "nothing happened to it");
    assert!(!lab.daemon_log().contains(PASSWORD));

    // Looked at without a daemon, too.
    lab.leave();
    assert_eq!(findings(&lab, &[]).1, [""; 0]);
    server.run("UPDATE task_transitions SET actor = 'somebody' WHERE n = 1");
    let told = findings(&lab, &[]).1;
    assert!(
        told.len() == 1 && told[0].contains("task_rows_differ") && told[0].contains("of 8 tasks"),
        "{told:?}"
    );
    assert_eq!(findings(&lab, &["--repair"]).1, [""; 0]);
    server.kill();
    let told = findings(&lab, &[]).1;
    assert!(told.len() == 1 && told[0].contains("task_rows_unreadable"), "{told:?}");
    assert!(!told[0].contains(PASSWORD), "{told:?}");
    server.start_again();
    lab.start();
    await_lists(&lab, 200);
    wait_rows(&lab, &after, "repaired");

    // Another database, made from nothing, says the same.
    lab.leave();
    lab.configure_tasks("");
    lab.start();
    await_lists(&lab, 200);
    wait_rows(&lab, &after, "made from nothing");
}
