//! `rekindle task` and `rekindle run --queue`: what a person types, reads and sees.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::pty::Pty;
use crate::ran::{Ran, Stdin, ran};

impl Lab {
    /// Runs `task add` with these arguments and the demo agent.
    fn task_add(&self, arguments: &[&str], stdin: Stdin<'_>) -> Ran {
        let mut command = self.rekindle(&["task", "add"]);
        ran(command.args(arguments).arg("--").args(self.demo(&[])), stdin)
    }
}

/// A lab in which one task runs at a time.
fn one_at_a_time() -> Lab {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("limit = 1\n");
    lab.start();
    lab
}

#[test]
fn a_task_is_added_shown_made_urgent_cancelled_and_attempted_again() {
    let lab = one_at_a_time();
    let first = lab.task_add(&["barrier here\nsay done", "--title", "the first"], Stdin::Nothing).exits(0);
    let (told, first) = (first.err, first.out.trim().to_owned());
    assert!(first.starts_with("task_"), "the id alone: {first:?}");
    // A person reads as much of it as tables show, and types no more.
    let short = &first["task_".len()..][..10];
    assert!(told.ends_with(&format!("task show {short}\n")), "{told}");
    lab.ran(&["task", "show", short]).exits(0).shows("the first");
    lab.reach("here");
    // From a pipe, named by the beginning of an id, behind the first.
    let second =
        lab.task_add(&["--shared", "--after", &first["task_".len()..], "--json"], Stdin::Text("say two"));
    let second = second.exits(0).json()["id"].as_str().expect("an id").to_owned();
    let listed = lab.ran(&["task", "ls"]).exits(0).shows("the first").shows("say two").shows("after ");
    assert!(listed.out.find("the first") < listed.out.find("say two"), "what runs is first: {listed:?}");
    lab.ran(&["task", "show", &first])
        .exits(0)
        .shows("running")
        .shows("attach sess_")
        .shows("1 turn, 0 tool calls");
    lab.ran(&["task", "priority", &second, "50"]).exits(0);
    assert_eq!(lab.task(&second)["priority"], 50);
    lab.ran(&["task", "priority", &second, "500"]).exits(2);

    lab.ran(&["task", "cancel", &first, "--reason", "not needed"]).exits(0);
    lab.wait_task(&first, "cancelled");
    lab.ran(&["task", "show", &first]).exits(0).shows("cancelled").shows("not needed");
    // What waited for it can never begin.
    lab.wait_task(&second, "failed");
    lab.ran(&["task", "ls", "--status", "failed"]).exits(0).shows("say two");
    lab.ran(&["task", "retry", &first, "--fresh"]).exits(0);
    lab.pass("here");
    lab.wait_task(&first, "completed");
    // And what failed because of it waits again, and has its turn.
    lab.wait_task(&second, "completed");
    lab.ran(&["task", "history", &first]).exits(0).shows("not needed").shows("completed").shows("agent");
    lab.ran(&["task", "logs", &first]).exits(0).shows("done");
    // Also one that has ended is named by the beginning of its id, as lists show it.
    let shown = lab.ran(&["task", "ls", "--status", "completed"]).exits(0).shows("the first").out;
    let short = shown.lines().nth(1).and_then(|row| row.split_whitespace().next()).expect("an id");
    assert!(short.len() < first.len(), "{shown}");
    lab.ran(&["task", "show", short]).exits(0).shows(&first);
    let several = lab.ran(&["--json", "task", "show", "task_0"]).exits(2);
    assert_eq!(several.error_code(), "task_ambiguous");
    // One that has ended well is not attempted again, and says so.
    let refused = lab.ran(&["--json", "task", "retry", &first]).exits(1);
    assert_eq!(refused.error_code(), "task_state_conflict");
    let unknown = lab.ran(&["--json", "task", "show", "01aaaa"]).exits(2);
    assert_eq!(unknown.error_code(), "task_unknown");

    lab.ran(&["task", "stats"]).exits(0).shows("completed");
    let stats = lab.ran(&["task", "stats", "--json"]).exits(0).json();
    assert_eq!(stats["statuses"], json!({"completed": 2}), "{stats}");
    let exported = lab.ran(&["task", "export"]).exits(0).out;
    let exported: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(exported.len(), 2);
    let whole = exported.iter().find(|task| task["id"] == first.as_str()).expect("the first");
    assert!(whole["transitions"].as_array().is_some_and(|list| list.len() >= 5), "{whole}");
    // A beginning that several tasks have names none of them, also if only one is still open.
    let open = lab.task_add(&["barrier open"], Stdin::Nothing).exits(0).out.trim().to_owned();
    let several = lab.ran(&["--json", "task", "cancel", "task_0"]).exits(2);
    assert_eq!(several.error_code(), "task_ambiguous");
    lab.reach("open");
    lab.pass("open");
    lab.wait_task(&open, "completed");
}

#[test]
fn a_file_adds_all_of_its_tasks_or_none() {
    let lab = one_at_a_time();
    let list = lab.path("todo.md");
    fs::write(&list, "# Today\n\n- [ ] say one\n- [x] say nothing\n- [ ] say two\n").expect("written");
    let file = list.to_str().expect("text");
    lab.task_add(&["-f", file, "--label", "today"], Stdin::Nothing).exits(0).shows("2 tasks added");
    let lines = r#"{"prompt": "say three", "ref": "a"}
{"prompt": "say four", "after": ["a"], "priority": 7}
"#;
    let added = lab.task_add(&["-f", "-", "--json"], Stdin::Text(lines)).exits(0).json();
    assert_eq!(added["tasks"].as_array().map(Vec::len), Some(2), "{added}");
    for (bad, named) in [
        ("{\"prompt\": \"say five\"}\n{\"promt\": \"say six\"}\n", "line 2"),
        ("{\"prompt\": \"say five\"}\n{\"prompt\": \"say six\", \"after\": [\"b\"]}\n", "b"),
    ] {
        let refused = lab.task_add(&["-f", "-"], Stdin::Text(bad));
        assert!(refused.code != Some(0) && refused.err.contains(named), "{refused:?}");
    }
    wait_for("their end", || {
        let all = lab.get("/api/tasks?limit=100")["tasks"].as_array().expect("a list").clone();
        (all.len() == 4 && all.iter().all(|task| task["status"] == "completed")).then_some(())
    });
    lab.ran(&["task", "ls", "-a", "--label", "today"]).exits(0).shows("say one").shows("say two");
    // Nobody has anything to do.
    lab.ran(&["task", "watch", "--until-empty"]).exits(0).shows("no task is running or waiting");
}

// I4: whoever waits for a turn waits on through the death of the daemon.
#[test]
fn a_queued_run_is_watched_when_it_is_its_turn_whatever_happens_to_the_daemon() {
    let mut lab = one_at_a_time();
    let first = lab.add_task(&lab.task_in("a", "barrier here\nsay done"));
    lab.reach("here");
    let mut command = lab.rekindle(&["run", "--queue", "say the words"]);
    command.arg("--").args(lab.demo(&[]));
    let mut terminal = Pty::start(&command, 100);
    terminal.see("queued as task_");
    lab.kill();
    terminal.see("no daemon answers");
    lab.start();
    lab.pass("here");
    terminal.see("the words");
    assert_eq!(terminal.end(), Some(0));
    lab.wait_task(&first, "completed");
}

#[test]
fn tasks_are_drawn_over_in_place_as_they_change() {
    let lab = one_at_a_time();
    let mut terminal = Pty::start(&lab.rekindle(&["task", "watch"]), 100);
    terminal.see("0 tasks");
    lab.add_task(&lab.task_in("a", "barrier here\nsay done"));
    lab.reach("here");
    lab.add_task(&lab.task_in("b", "say more"));
    terminal.see("2 tasks: 1 pending, 1 running");
    lab.pass("here");
    terminal.see_that("nothing of what was there before", |text| {
        text.contains("0 tasks") && !text.contains("running") && !text.contains("pending")
    });
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(terminal.text().trim(), "", "what was there before is there again");
}

#[test]
fn at_a_terminal_the_id_of_a_new_task_is_as_short_as_in_tables() {
    let lab = Lab::new();
    let mut command = lab.rekindle(&["task", "add", "say hello", "--"]);
    command.args(lab.demo(&[]));
    let mut terminal = Pty::start(&command, 120);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    let id = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    assert!(id.len() == 10 && !text.contains("task_"), "{text}");
    assert!(text.trim_end().ends_with(&format!("task show {id}")), "{text}");
    lab.ran(&["task", "show", id]).exits(0).shows("say hello");
}
