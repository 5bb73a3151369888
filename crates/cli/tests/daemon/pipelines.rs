//! Pipelines as users have them: a real daemon, real agents, files of a real directory; and the death of all of them at every record of
//! a run's ledger.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};
use crate::pipeline_lab::kinds;
use crate::worktrees::git;

/// Kinds of the records of two rounds of three stages, of which the check of the first fails.
const COURSE: [&str; 14] = [
    "pipeline.started",
    "step.intended",
    "step.began",
    "step.finished",
    "step.intended",
    "step.began",
    "step.finished",
    "step.intended",
    "step.began",
    "step.finished",
    "step.intended",
    "step.began",
    "step.finished",
    "step.intended",
];

/// What the directory has in the end: a line of each round.
pub(crate) const WORK: &str = "round 1\nround 2\n";

/// Far more deaths than a run has records.
const MOST_DEATHS: usize = 60;

/// Returns all kinds of the records of a run that nothing disturbed.
fn course() -> Vec<&'static str> {
    let rest =
        ["step.began", "step.finished", "step.intended", "step.began", "step.finished", "pipeline.completed"];
    COURSE.into_iter().chain(rest).collect()
}

/// Returns the project's file: work, a look at it, and a check that passes in the second round.
pub(crate) fn config(lab: &Lab) -> String {
    let words: Vec<String> = lab.demo(&[]).iter().map(|word| format!("{word:?}")).collect();
    let command = words.join(", ");
    format!(
        r#"version = 1
[agents.demo]
command = [{command}]
profile = "acp"

[[tasks]]
id = "T-1"
goal = "append code.txt round"

[pipelines.default]
max_rounds = 2
[[pipelines.default.stages]]
name = "implement"
agent = "demo"
prompt = "{{{{task.goal}}}} {{{{round}}}}\nsay done"
[[pipelines.default.stages]]
name = "review"
agent = "demo"
prompt = "say I look at it\noutcome approved it is fine"
writes = false
outcomes = {{ approved = "next", changes_requested = "implement" }}
[[pipelines.default.stages]]
name = "verify"
check = ["grep", "round 2", "code.txt"]
on_fail = "implement"
"#
    )
}

/// Waits for the end of a run, and judges it: each step was finished once, whoever died; the work is there once, and nobody is left.
pub(crate) fn judge(lab: &Lab, run: &str) -> Vec<Value> {
    let end = rekindle_lab::look_for(PATIENCE, Duration::from_millis(10), || {
        lab.try_show_run(run).filter(|view| view["status"] != "running")
    });
    let end = end.unwrap_or_else(|| panic!("it does not end: {:#?}", lab.try_show_run(run)));
    assert_eq!(end["status"], "completed", "{end:#}");
    let records = lab.ledger(run);
    for (record, seq) in records.iter().zip(1..) {
        assert_eq!(record["seq"], seq, "without a gap");
    }
    let finished: Vec<&str> = records
        .iter()
        .filter(|record| record["kind"] == "step.finished")
        .filter_map(|record| record["step_id"].as_str())
        .collect();
    let steps = ["implement-1", "review-1", "verify-1", "implement-2", "review-2", "verify-2"];
    assert_eq!(finished, steps, "{:?}", kinds(&records));
    assert_eq!(fs::read_to_string(lab.path("work").join("code.txt")).expect("a file"), WORK);
    wait_for("the end of all agents", || lab.living_agents().is_empty().then_some(()));
    records
}

#[test]
fn a_run_goes_through_two_rounds_and_is_told_as_it_goes() {
    let mut lab = Lab::new();
    let run = lab.start_run(&config(&lab), &json!({}));
    let path = format!("/api/pipelines/{run}");
    let mut events = lab.events(&format!("{path}/events"), None);
    let (mut told, mut last) = (Vec::new(), String::new());
    while let Some(event) = events.next() {
        if let Some(id) = event.id {
            told.push(event.event);
            last = id;
        }
    }
    assert_eq!(told, course());
    assert_eq!(kinds(&judge(&lab, &run)), course());
    let headers = format!("Last-Event-ID: {last}\r\n");
    let again = lab.try_ask("GET", &format!("{path}/events"), &headers, &Value::Null);
    assert_eq!(again.expect("an answer").status, 204, "it is over");
    let view = lab.get(&path);
    assert_eq!(view["current_stage"], "complete");
    assert_eq!((view["round"].as_u64(), view["pending"].is_null()), (Some(2), true));
    let list = |query: &str| lab.get(&format!("/api/pipelines?{query}"))["pipelines"].clone();
    assert_eq!(list("status=completed&task=T-1")[0]["run_id"], json!(run));
    assert_eq!(list("status=running"), json!([]));
    let none = lab.ask("GET", "/api/pipelines?limit=0", &Value::Null);
    assert_eq!((none.status, &none.body["error"]["code"]), (400, &json!("invalid_query")));
    let resumed = lab.ask("POST", &format!("{path}/resume"), &json!({}));
    assert_eq!((resumed.status, resumed.body["resumed"].as_bool()), (202, Some(false)));
    let aborted = lab.ask("POST", &format!("{path}/abort"), &json!({}));
    assert_eq!(aborted.body["error"]["code"], "run_completed");
    // The summary is made of the ledger: without it nothing is lost.
    let file = lab.home().join("runs").join(&run).join("run.json");
    let summary = || fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let before = summary().expect("a summary");
    assert_eq!((&before["run_id"], &before["status"]), (&json!(run), &json!("completed")));
    lab.kill();
    fs::remove_file(&file).expect("removed");
    lab.start();
    assert_eq!(wait_for("the summary", summary), before);
    assert_eq!(kinds(&lab.ledger(&run)), course(), "nothing was added");
}

/// Starts a run, and has daemons die at a place, one after the other, until it is complete; returns its name and how many died.
fn through_deaths(lab: &mut Lab, place: &str) -> (String, usize) {
    lab.start_to_die(place);
    wait_for("a daemon", || lab.try_get("/readyz"));
    let run = lab.start_run(&config(lab), &json!({}));
    for deaths in 0..MOST_DEATHS {
        wait_for("a death, or the end", || (lab.is_run_over(&run) || lab.dead()).then_some(()));
        if !lab.dead() {
            return (run, deaths);
        }
        lab.start_to_die(place);
    }
    panic!("it does not end: {:#?}", lab.try_show_run(&run));
}

/// I4, I11: the daemon dies behind every record, and before every record; agents work on, and the next one goes on.
#[test]
fn a_daemon_that_dies_at_every_record_of_a_ledger_loses_nothing_and_repeats_nothing() {
    for place in ["pipeline.after_record#1", "pipeline.before_record#2"] {
        let mut lab = Lab::without_daemon();
        let (run, deaths) = through_deaths(&mut lab, place);
        assert!(deaths >= 11, "{place}: {deaths}");
        let records = judge(&lab, &run);
        assert_eq!(kinds(&records), course(), "{place}");
        assert_eq!(lab.agents().len(), 4, "{place}: no agent was begun twice");
    }
}

/// I4, I11: the daemon dies between any two effects of it, of a record, of a session, of a holder; in the long run at every such place.
#[test]
fn a_daemon_that_dies_between_any_two_effects_repeats_nothing() {
    let is_long = std::env::var_os("REKINDLE_TEST_LONG").is_some();
    let places: Vec<usize> = if is_long { (12..120).collect() } else { vec![14, 23, 37] };
    for n in places {
        let mut lab = Lab::without_daemon();
        lab.start();
        // The request itself comes by some places before it is answered.
        let run = lab.start_run(&config(&lab), &json!({}));
        lab.kill();
        let place = format!("*#{n}");
        for death in 0.. {
            assert!(death < MOST_DEATHS, "{place}: it does not end");
            lab.start_to_die(&place);
            wait_for("a death, or the end", || (lab.is_run_over(&run) || lab.dead()).then_some(()));
            if !lab.dead() {
                break;
            }
        }
        lab.kill();
        lab.start();
        judge(&lab, &run);
    }
}

/// I9, I11: everything dies, behind record after record. What was at work is cut, and begins again with the files of before as soon as
/// somebody says so.
#[test]
fn everything_that_dies_at_every_record_of_a_ledger_begins_its_step_again() {
    let mut lab = Lab::without_daemon();
    let place = |deaths: usize| format!("pipeline.after_record#{}", 1 + deaths % 4);
    lab.start_to_die(&place(0));
    wait_for("a daemon", || lab.try_get("/readyz"));
    let run = lab.start_run(&config(&lab), &json!({"on_cut": "restore"}));
    let mut deaths = 0;
    while deaths < MOST_DEATHS {
        let rests = |view: &Value| {
            let why = view["pending"]["why"].as_str().unwrap_or_default();
            ["drift", "too_many_attempts"].contains(&why)
        };
        wait_for("a death, a rest, or the end", || {
            let is_over =
                lab.try_show_run(&run).is_some_and(|view| view["status"] != "running" || rests(&view));
            (is_over || lab.dead()).then_some(())
        });
        if lab.dead() {
            lab.kill_holders();
            deaths += 1;
            lab.start_to_die(&place(deaths));
        } else if lab.try_show_run(&run).is_some_and(|view| view["status"] == "running") {
            // It may die over it.
            let path = format!("/api/pipelines/{run}/resume");
            let _ = lab.try_ask("POST", &path, "", &json!({"on_drift": "restore"}));
        } else {
            break;
        }
    }
    assert!(deaths >= 5, "{deaths}");
    judge(&lab, &run);
}

/// I13: whoever aborts a run means its agent too, and means it for good.
#[test]
fn an_abort_ends_the_agent_and_is_durable() {
    let mut lab = Lab::new();
    let config = config(&lab).replacen("say done", "barrier working\\nsay done", 1);
    let run = lab.start_run(&config, &json!({"on_cut": "restore"}));
    let path = format!("/api/pipelines/{run}");
    lab.reach("working");
    let resume = |lab: &Lab, body: Value| lab.ask("POST", &format!("{path}/resume"), &body);
    assert_eq!(resume(&lab, json!({})).body["error"]["code"], "run_locked");
    let aborted = lab.post(&format!("{path}/abort"), &json!({"reason": "enough"}));
    assert_eq!((&aborted["status"], &aborted["reason"]), (&json!("aborted"), &json!("enough")));
    wait_for("the end of the agent", || lab.living_agents().is_empty().then_some(()));
    lab.restart();
    assert_eq!(resume(&lab, json!({})).body["error"]["code"], "run_aborted");
    lab.pass("working");
    let resumed = resume(&lab, json!({"force": true, "on_drift": "restore"}));
    assert_eq!((resumed.status, resumed.body["reopened"].as_bool()), (202, Some(true)), "{}", resumed.body);
    judge(&lab, &run);
}

#[test]
fn several_tasks_work_at_the_same_time_in_worktrees_of_their_own() {
    let lab = Lab::new();
    let task = "[[tasks]]\nid = \"T-2\"\ngoal = \"append code.txt round\"\n\n[pipelines.default]";
    let config = config(&lab).replacen("[pipelines.default]", task, 1);
    let work = lab.path("work");
    fs::write(work.join("rekindle.toml"), &config).expect("written");
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "begin"]] {
        git(&work, arguments).expect("done");
    }
    let mut body = json!({"working_dir": work, "tasks": ["T-1", "T-2"]});
    assert_eq!(lab.ask("POST", "/api/pipelines", &body).body["error"]["code"], "invalid_pipeline");
    body["worktree"] = json!({});
    body["trust"] = lab.ask("POST", "/api/pipelines", &body).body["error"]["advice"]["hash"].clone();
    let key = "Idempotency-Key: both\r\n";
    let made = lab.try_ask("POST", "/api/pipelines", key, &body).expect("an answer");
    assert_eq!(made.status, 201, "{}", made.body);
    let again = lab.try_ask("POST", "/api/pipelines", key, &body).expect("an answer");
    let runs = |reply: &Value| -> Vec<String> {
        let runs = reply["pipelines"].as_array().expect("runs").iter();
        runs.map(|run| run["run_id"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(runs(&made.body), runs(&again.body));
    let mut places = Vec::new();
    for run in runs(&made.body) {
        let end = wait_for("its end", || lab.try_show_run(&run).filter(|view| view["status"] != "running"));
        assert_eq!((&end["status"], &end["origin"]), (&json!("completed"), &json!(work)), "{end:#}");
        let place = std::path::PathBuf::from(end["working_dir"].as_str().expect("a directory"));
        assert_eq!(fs::read_to_string(place.join("code.txt")).expect("a file"), WORK);
        places.push(place);
    }
    assert_ne!(places[0], places[1]);
    assert!(!work.join("code.txt").exists(), "nobody worked there");
}
