//! Agents that take commands in JSON, as real processes: one that keeps no answers, one that does, one that answers again and again. They,
//! the daemon, and everything at once are killed in the middle of each command.

use std::fs;
use std::time::Duration;

use rekindle_holder::identity::Identity;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};
use crate::ran::{Stdin, ran};

/// The stages, and the agents of each.
const STAGES: [&str; 3] = ["forgets", "keeps", "repeats"];

/// Returns the project's file: each stage does one thing that can be seen in its directory and one that can be counted beside it, then
/// meets its test, and has another sort of agent.
fn config(lab: &Lab, before_answer: &str) -> String {
    let answers = lab.path("answers").display().to_string();
    let flags: [&[&str]; 3] = [&["--ndjson"], &["--ndjson", "--answers", &answers], &["--ndjson", "--twice"]];
    let mut config = String::from("version = 1\n[[tasks]]\nid = \"T-1\"\ngoal = \"go through it\"\n");
    for (stage, flags) in STAGES.iter().zip(flags) {
        let command = lab.demo(&[flags, &["--heartbeat", "20ms"]].concat());
        config.push_str(&format!("[agents.{stage}]\ncommand = {command:?}\nprofile = \"ndjson\"\n"));
    }
    config.push_str("[pipelines.default]\non_cut = \"restore\"\n");
    let done = lab.path("done").display().to_string();
    for stage in STAGES {
        let before = if stage == "keeps" { before_answer } else { "" };
        let prompt = format!(
            "append work.txt {stage}\nartifact work.txt\nrun echo {stage} >> {done}\nbarrier {stage}\nsay I did {{{{task.goal}}}}\n\
             {before}outcome good all is well"
        );
        config.push_str(&format!(
            "[[pipelines.default.stages]]\nname = \"{stage}\"\nagent = \"{stage}\"\nprompt = {prompt:?}\n\
             outcomes = {{ good = \"next\", bad = \"fail\" }}\n"
        ));
    }
    config
}

/// Waits for the end, and judges it: everything is there once, whoever died.
fn judge(lab: &Lab, run: &str, cut: usize) {
    let end = rekindle_lab::look_for(PATIENCE, Duration::from_millis(10), || {
        lab.try_show_run(run).filter(|view| view["status"] != "running")
    });
    let end = end.unwrap_or_else(|| panic!("it does not end: {:#?}", lab.try_show_run(run)));
    assert_eq!(end["status"], "completed", "{end:#}");
    let work = fs::read_to_string(lab.path("work").join("work.txt")).expect("a file");
    assert_eq!(work, "forgets\nkeeps\nrepeats\n");
    let records = lab.ledger(run);
    let of = |kind: &str| records.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
    let finished = of("step.finished");
    let steps: Vec<&str> = finished.iter().filter_map(|record| record["step_id"].as_str()).collect();
    assert_eq!(steps, ["forgets-1", "keeps-1", "repeats-1"]);
    assert_eq!(of("step.interrupted").len(), cut, "{records:#?}");
    for step in finished {
        assert_eq!((&step["outcome"], &step["payload"]["findings"]), (&json!("good"), &json!("all is well")));
        assert_eq!(step["payload"]["artifacts"][0]["path"], "work.txt", "{step:#}");
        assert!(step["counts"]["events"].as_u64() >= Some(1), "{step:#}");
    }
    wait_for("the end of all agents", || lab.living_agents().is_empty().then_some(()));
}

/// How often the work of each stage was done.
fn done(lab: &Lab) -> Vec<usize> {
    let done = fs::read_to_string(lab.path("done")).expect("a file");
    STAGES.iter().map(|stage| done.lines().filter(|line| line == stage).count()).collect()
}

/// The commands that agents were sent, as they stand in the record.
fn commands(lab: &Lab) -> Vec<Value> {
    let lines = lab.record();
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Has a run go through all stages, and something die in the middle of each.
fn with_deaths(mut kill: impl FnMut(&mut Lab, &str)) -> (Lab, String) {
    let mut lab = Lab::new();
    let run = lab.start_run(&config(&lab, ""), &json!({}));
    for stage in STAGES {
        lab.reach(stage);
        kill(&mut lab, &run);
        lab.pass(stage);
    }
    (lab, run)
}

#[test]
fn a_daemon_that_is_killed_during_every_command_sends_none_again() {
    let (lab, run) = with_deaths(|lab, _| lab.restart());
    judge(&lab, &run, 0);
    assert_eq!((done(&lab), commands(&lab).len()), (vec![1; 3], 3));
    let heartbeats = lab.try_show_run(&run).expect("a view")["counts"]["heartbeats"].as_u64();
    assert!(heartbeats > Some(0), "{heartbeats:?}");
}

#[test]
fn an_agent_that_is_killed_during_its_command_is_sent_it_again_under_the_same_key() {
    let (lab, run) = with_deaths(|lab, _| {
        let agent = lab.living_agents().pop().expect("it works");
        rekindle_lab::kill(&Identity::of(agent).expect("it lives"));
    });
    judge(&lab, &run, 3);
    assert_eq!(done(&lab), [2; 3], "what is cut in the middle is done again, and nothing else");
    let commands = commands(&lab);
    let ids: Vec<&str> = commands.iter().filter_map(|command| command["message_id"].as_str()).collect();
    assert_eq!(ids[..3], ["cmd-forgets-1-1", "cmd-forgets-1-2", "cmd-keeps-1-1"]);
    for pair in commands.chunks(2) {
        assert_eq!(pair[0]["idempotency_key"], pair[1]["idempotency_key"]);
        assert_eq!((&pair[0]["inputs"], &pair[0]["version"]), (&pair[1]["inputs"], &pair[1]["version"]));
    }
}

#[test]
fn everything_that_is_killed_during_every_command_goes_on_when_somebody_says_so() {
    let (lab, run) = with_deaths(|lab, run| {
        lab.kill();
        lab.kill_holders();
        lab.start();
        // Nobody knows who changed the files since.
        wait_for("its rest", || lab.try_show_run(run).filter(|view| view["pending"]["why"] == "drift"));
        lab.post(&format!("/api/pipelines/{run}/resume"), &json!({"on_drift": "restore"}));
    });
    judge(&lab, &run, 3);
    assert_eq!(done(&lab), [2; 3]);
}

/// Whoever has done the work and died before it could say so answers from what it has kept, with the files of that.
#[test]
fn an_agent_that_died_with_its_answer_kept_does_the_work_once() {
    let lab = Lab::new();
    let run = lab.start_run(&config(&lab, "crash-kept\n"), &json!({}));
    STAGES.iter().for_each(|stage| lab.pass(stage));
    judge(&lab, &run, 1);
    assert_eq!(done(&lab), [1; 3]);
    let keys: Vec<Value> = commands(&lab).iter().map(|command| command["idempotency_key"].clone()).collect();
    assert_eq!((keys.len(), &keys[1]), (4, &keys[2]));
}

#[test]
fn a_session_of_its_own_has_plain_words_done() {
    let lab = Lab::new();
    let agent = lab.demo(&["--ndjson", "--twice"]);
    let run = |prompt: &str| {
        let mut arguments = vec!["run", "--profile", "ndjson", prompt, "--"];
        arguments.extend(agent.iter().map(String::as_str));
        let mut command = lab.rekindle(&arguments);
        ran(command.current_dir(lab.path("work")), Stdin::Nothing)
    };
    run("write a.txt hello\nsay written").exits(0).shows("written");
    assert_eq!(fs::read_to_string(lab.path("work").join("a.txt")).expect("a file"), "hello\n");
    run("refuse not today").exits(1).tells("not today");
    let command = commands(&lab).pop().expect("a command");
    assert_eq!((&command["action"], &command["idempotency_key"]), (&json!("prompt"), &Value::Null));
}
