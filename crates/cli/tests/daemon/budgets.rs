//! Budgets of runs, sessions and days: what has used one up is cancelled and says which, also over deaths of the daemon.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Returns what a session's log says of budgets: whose, which part, and whether nothing is left.
fn notices(lab: &Lab, id: &str) -> Vec<String> {
    let of_budget = |record: &Value| record["kind"] == "run.budget";
    let text = |record: &Value| {
        let word = |name: &str| record[name].as_str().expect("a word").to_owned();
        format!(
            "{} {} {}",
            word("scope"),
            word("part"),
            if record["exceeded"] == true { "over" } else { "near" }
        )
    };
    lab.log(id).iter().filter(|record| of_budget(record)).map(text).collect()
}

fn say(lab: &Lab, id: &str, content: &str) -> String {
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": content}));
    lab.wait_end(id)
}

fn configured(budgets: &str) -> Lab {
    let mut lab = Lab::without_daemon();
    lab.configure(&format!("[budgets]\n{budgets}"));
    lab.start();
    lab
}

// I13
#[test]
fn a_run_that_has_used_its_budget_is_cancelled_and_the_next_one_has_its_own() {
    let lab = configured("run = { cost = 1.0 }\nsession = { turns = 3 }\n");
    let id = lab.run("usage 10 1 0.85\nbarrier near\nusage 10 1 1.5\nbarrier over");
    wait_for("a notice", || (notices(&lab, &id) == ["run cost near"]).then_some(()));
    let output = lab.rekindle(&["status", &id]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("the run has used 0.85 of 1.00 (cost)"), "{text}");
    lab.pass("near");
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!(notices(&lab, &id), ["run cost near", "run cost over"]);
    let log = lab.log(&id);
    let asked = log.iter().find(|record| record["kind"] == "run.cancel_requested").expect("a cancel");
    assert_eq!((&asked["why"], &asked["by"]), (&json!("budget"), &json!("budget")));
    // What was used before is not the next one's.
    assert_eq!(say(&lab, &id, "say more"), "completed");
    assert_eq!(say(&lab, &id, "say last"), "completed");
    let turns = lab.count(&id, "run.started");
    let why = refusal(&lab, &format!("/api/sessions/{id}/messages"), &json!({"content": "say more"}));
    assert_eq!(why, "the session has used 3 of 3 turns: nothing is left");
    assert_eq!(lab.count(&id, "run.started"), turns, "nothing has begun");
}

/// Asks for a run for which nothing is left; returns why it is refused.
fn refusal(lab: &Lab, path: &str, body: &Value) -> String {
    let reply = lab.ask("POST", path, body);
    let error = &reply.body["error"];
    assert_eq!((reply.status, &error["code"]), (409, &json!("budget_exceeded")), "{error}");
    error["message"].as_str().expect("a text").to_owned()
}

// I5: what was taken once is known, whatever has been used since.
#[test]
fn nothing_begins_where_nothing_is_left_and_what_began_is_known_by_its_key() {
    let lab = configured("session = { turns = 2 }\n");
    let id = lab.run("say one");
    lab.wait_end(&id);
    let messages = format!("/api/sessions/{id}/messages");
    let send = |key: &str| {
        lab.try_ask(
            "POST",
            &messages,
            &format!("Idempotency-Key: {key}\r\n"),
            &json!({"content": "barrier on"}),
        )
        .expect("an answer")
    };
    let first = send("one");
    assert_eq!(first.status, 202, "{}", first.body);
    // Behind another it waits for its turn, and is looked at then.
    let queued = lab.post(&messages, &json!({"content": "barrier never"}));
    assert_eq!(queued["queued"], true);
    lab.pass("on");
    wait_for("the end of what waited", || {
        (notices(&lab, &id).last().map(String::as_str) == Some("session turns over")).then_some(())
    });
    assert_eq!(lab.wait_end(&id), "cancelled");
    let again = send("one");
    assert_eq!((again.status, &again.body["message_id"]), (202, &first.body["message_id"]));
    let refused = send("two");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("budget_exceeded")));
    let output = lab.rekindle(&["send", &id, "say more"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the session has used 3 of 2 turns: nothing is left"), "{text}");
    assert!(text.contains("start another one with rekindle run"), "{text}");
}

#[test]
fn a_run_that_takes_too_long_is_cancelled_though_it_says_nothing() {
    let lab = configured("run = { wall = \"1s\" }\n");
    let id = lab.run("barrier never");
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!(notices(&lab, &id).last().map(String::as_str), Some("run wall_s over"));
}

// I3, I13: the daemon dies between the notice and the cancel.
#[test]
fn a_budget_is_held_to_by_the_next_daemon_and_noticed_once() {
    let mut lab = configured("run = { cost = 1.0 }\n");
    lab.leave();
    lab.start_with(&[], &[("REKINDLE_CRASH_AT", "budget.noted")]);
    let id = lab.run("usage 10 1 2.0\nbarrier never");
    lab.died();
    lab.start();
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!(notices(&lab, &id), ["run cost over"]);
}

// I2: what was used today is in the logs, whoever adds it up.
#[test]
fn the_budget_of_a_day_is_that_of_all_sessions_and_daemons() {
    let mut lab = configured("day = { cost = 1.0 }\n");
    let first = lab.run("usage 10 1 0.6");
    assert_eq!(lab.wait_end(&first), "completed");
    lab.restart();
    let second = lab.run("usage 10 1 0.6\nbarrier never");
    assert_eq!(lab.wait_end(&second), "cancelled");
    assert_eq!(notices(&lab, &second).last().map(String::as_str), Some("day cost over"));
    let why = refusal(&lab, "/api/sessions", &lab.session("say more"));
    assert!(why.starts_with("the day has used 1.20 of 1.00 (cost): nothing is left, until "), "{why}");
    // The next daemon knows it as soon as it has added up the day.
    lab.restart();
    wait_for("a refusal", || {
        let reply =
            lab.ask("POST", &format!("/api/sessions/{first}/messages"), &json!({"content": "say more"}));
        (reply.status == 409).then(|| assert_eq!(reply.body["error"]["code"], "budget_exceeded"))
    });
    // Work that waits begins tomorrow, or when somebody allows more.
    let task = lab.add_task(&lab.task_in("a", "say done"));
    let waits = wait_for("what it waits for", || {
        let task = lab.task(&task);
        task["waits_for"].as_str().map(str::to_owned).filter(|_| task["status"] == "pending")
    });
    assert!(waits.starts_with("the budget of the day is used up, until "), "{waits}");
    lab.leave();
    lab.configure("[budgets]\nday = { cost = 5.0 }\n");
    lab.start();
    lab.wait_task(&task, "completed");
}

// A task that begins in a session of its own again has not a new budget.
#[test]
fn a_task_has_one_budget_for_all_its_sessions() {
    let lab = configured("task = { cost = 1.0 }\n");
    let id = lab.add_task(&lab.task_in("a", "usage 10 1 0.7\nbarrier used\nrefuse no more"));
    lab.pass("used");
    lab.wait_task(&id, "failed");
    std::fs::remove_file(lab.path("barriers/used.go")).expect("removed");
    assert_eq!(lab.ask("POST", &format!("/api/tasks/{id}/retry"), &json!({"fresh": true})).status, 200);
    let ended = wait_for("its second end", || {
        let task = lab.task(&id);
        (task["status"] == "failed" && task["attempt"].as_u64() >= Some(2)).then_some(task)
    });
    assert_eq!(ended["reason"], "budget: cost", "{ended}");
}
