//! The events of a task: every record of it and of its runs, once and in order, from wherever a follower was cut; the stream ends with
//! the task.

use serde_json::{Value, json};

use crate::lab::{Events, Lab};

/// Reads events to the end of the stream, or so many: their kinds, and their ids.
fn read(mut events: Events, most: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while found.len() < most
        && let Some(event) = events.next()
    {
        found.push((event.event.clone(), event.id.clone().unwrap_or_default()));
    }
    found
}

fn path(id: &str) -> String {
    format!("/api/tasks/{id}/events")
}

// I2, I3
#[test]
fn a_task_is_followed_to_its_end_from_wherever_its_follower_was_cut() {
    let mut lab = Lab::new();
    let id = lab.add_task(&lab.task_in("a", "ask may I\nbarrier here\nsay done"));
    let live = lab.events(&path(&id), None);
    let task = lab.wait_task(&id, "waiting_input");
    let session = task["session_id"].as_str().expect("a session").to_owned();
    let wait = lab.show(&session)["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    lab.reach("here");
    lab.pass("here");
    lab.wait_task(&id, "completed");
    let told = read(live, usize::MAX);
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds[..2], ["task.created", "task.claimed"], "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"task.ended"), "{kinds:?}");
    for once in
        ["session.created", "run.started", "run.waiting", "task.waiting", "run.completed", "message.agent"]
    {
        assert_eq!(kinds.iter().filter(|kind| **kind == once).count(), 1, "{once}: {kinds:?}");
    }
    let at = |wanted: &str| kinds.iter().position(|kind| *kind == wanted);
    assert!(at("run.waiting") < at("task.waiting") && at("run.completed") < at("task.ended"), "{kinds:?}");
    // Whoever was cut anywhere gets what is left, and nothing twice: also from another daemon.
    lab.restart();
    for cut in 0..told.len() - 1 {
        let rest = read(lab.events(&path(&id), Some(&told[cut].1)), usize::MAX);
        assert_eq!(rest.last().map(|(kind, _)| kind.as_str()), Some("task.ended"), "behind {:?}", told[cut]);
        let mut both: Vec<&str> = told[..=cut].iter().chain(&rest).map(|(kind, _)| kind.as_str()).collect();
        let mut all = kinds.clone();
        both.sort_unstable();
        all.sort_unstable();
        assert_eq!(both, all, "behind {:?}", told[cut]);
    }
    // Whoever has seen the end has nothing to come back for.
    let last = format!("Last-Event-ID: {}\r\n", told.last().expect("an event").1);
    let over = lab.try_ask("GET", &path(&id), &last, &Value::Null).expect("an answer");
    assert_eq!(over.status, 204);
    // Nothing is recorded of a task behind its end, however close it came.
    let log = rekindle_lab::tasks_log(&lab.home()).expect("a log");
    assert!(log.lines().last().is_some_and(|line| line.contains("task.ended")), "{log}");
}

#[test]
fn a_place_that_the_logs_do_not_have_is_refused_or_begun_anew() {
    let lab = Lab::new();
    let mut fails = lab.task_in("a", "x");
    fails["agent"] = json!({"profile": "exec", "command": ["false"]});
    let id = lab.add_task(&fails);
    lab.wait_task(&id, "failed");
    let told = read(lab.events(&path(&id), None), usize::MAX);
    let end = &told.last().expect("an event").1;
    for (wrong, what) in [
        ("1.0.0.0123456789abcdef".to_owned(), "another hash"),
        ("999.1.1.0123456789abcdef".to_owned(), "a record that is not there"),
        (end.replacen(|c: char| c.is_ascii_digit(), "9", 1), "another number"),
    ] {
        let events = read(lab.events(&path(&id), Some(&wrong)), usize::MAX);
        assert_eq!(events, [("reset".to_owned(), String::new())], "{what}");
    }
    let bad = lab.try_ask("GET", &path(&id), "Last-Event-ID: 7.0123456789abcdef\r\n", &Value::Null);
    assert_eq!(bad.expect("an answer").code(), (400, "invalid_last_event_id"));
    let unknown = lab.ask("GET", &path("task_01khz0p6r8vk6mqj3b8y2c9d4e"), &Value::Null);
    assert_eq!(unknown.code(), (404, "task_unknown"));
    // One that was brought back goes on where its end was told.
    lab.post(&format!("/api/tasks/{id}/retry"), &json!({"fresh": true}));
    let more = read(lab.events(&path(&id), Some(end)), usize::MAX);
    let kinds: Vec<&str> = more.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds[..2], ["task.retried", "task.claimed"], "{kinds:?}");
    assert!(kinds.contains(&"session.created") && kinds.last() == Some(&"task.ended"), "{kinds:?}");
}
