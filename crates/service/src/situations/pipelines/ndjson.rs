//! Steps of agents that take commands in JSON: what they are told, what ends a command and what does not, what is heard of them, and
//! what becomes of a command when anybody dies.

use std::time::Duration;

use rekindle_domain::event::{Event, OnCut, StepCounts};
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::next_step::Waits;
use rekindle_domain::pipeline::{Payload, RunStatus};
use rekindle_store::log::Cursor;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind};
use serde_json::{Value, json};

use super::courses::{PASSES, ROUND};
use super::home::{CONFIG, Home, new_run};
use crate::pipelines::NewRun;

const WRITES: &str = "text writes:code:1 beat end";
const APPROVES: &str = "says:approved end";

fn config() -> String {
    CONFIG.replace(r#""profile":"acp""#, r#""profile":"ndjson""#)
}

fn run_with(lives: &[&'static str], new: NewRun) -> Home {
    let mut home = Home::new(lives);
    home.start(new).expect("started");
    home.settle();
    home
}

fn with_run(lives: &[&'static str]) -> Home {
    run_with(lives, new_run(&config()))
}

/// The commands that agents were sent.
fn commands(home: &Home) -> Vec<Value> {
    home.scripted.world().memory.iter().filter(|kept| kept["kind"] == "command").cloned().collect()
}

fn payload(home: &Home, stage: &str) -> Value {
    let state = home.state();
    match state.latest_result(stage).and_then(|(_, result)| result.payload.clone()) {
        Some(Payload::Inline(json)) => serde_json::from_str(json.as_json()).expect("JSON"),
        other => panic!("no payload: {other:?}"),
    }
}

fn counts(home: &Home, stage: &str) -> StepCounts {
    home.state().latest_result(stage).expect("a result").1.counts
}

/// What was noted of the agent of the latest attempt, by their words.
fn notices(home: &Home) -> Vec<String> {
    let reader = home.store().reader(home.session().id).expect("a log");
    let (mut lines, mut found) = (reader.forward(Cursor::START), Vec::new());
    while let Some(raw) = lines.next().expect("a log") {
        if let Ok(Event::AgentNotice(notice)) = Line::parse(raw.bytes).expect("a record").event() {
            found.push(notice.what.into_owned());
        }
    }
    found
}

#[test]
fn a_command_says_all_that_its_agent_needs() {
    let config = config().replace(r#""name":"review""#, r#""name":"review","deadline_s":60"#);
    let home = run_with(&[WRITES, "hang"], new_run(&config));
    let (commands, state) = (commands(&home), home.state());
    let keys: Vec<String> = state.steps().map(|step| step.key.to_string()).collect();
    let implement = json!({
        "kind": "command", "message_id": "cmd-implement-1-1", "task_id": "T-1", "action": "implement", "idempotency_key": keys[0],
        "version": {"snapshot_id": rekindle_workspace::tree::short_name(&state.steps().next().expect("a step").from)},
        "round": 1, "deadline_at": null,
        "inputs": {"spec": {"file": "spec"}, "goal": "Make it so", "prompt": "Make it so as it is written "},
    });
    assert_eq!(commands[0], implement);
    assert_eq!(commands[1]["outcomes"], json!(["approved", "changes_requested"]));
    assert_eq!(commands[1]["inputs"]["prompt"], "look at changed code\n", "it is not asked to write a block");
    assert!(commands[1]["deadline_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{}", commands[1]);
    assert_ne!(keys[0], keys[1]);
}

// I11
#[test]
fn events_end_commands_and_everything_is_counted() {
    let mut home = with_run(&["text text event beat beat writes:code:1 beat end", APPROVES, PASSES]);
    assert_eq!(home.news(), ROUND);
    assert_eq!(counts(&home, "implement"), StepCounts { events: 2, heartbeats: 3, logs: 2 });
    assert_eq!(counts(&home, "review"), StepCounts { events: 1, heartbeats: 0, logs: 0 });
    let said = payload(&home, "review");
    assert_eq!((&said["findings"], &said["event"]), (&json!("as found"), &json!("agent.completed")));
    assert_eq!(said["payload"]["outcome"], "approved");
    assert_eq!(home.scripted.living(), 0, "whoever has answered is ended");
}

#[test]
fn the_first_answer_counts_and_later_ones_are_recorded() {
    let mut home = with_run(&["writes:code:1 end again late", APPROVES, PASSES]);
    assert_eq!(home.news(), ROUND);
    let mut home = with_run(&["writes:code:1 stray event hang end", APPROVES, PASSES]);
    assert!(home.news().ends_with("begin implement-1"), "an answer to another command is none");
    assert_eq!(notices(&home), ["event", "event"]);
    home.scripted.go_on();
    home.settle();
    assert_eq!(home.course(), ROUND);
    let home = with_run(&["writes:code:1 no late", "hang"]);
    assert!(home.course().ends_with("finish implement-1 failed; failed"), "{}", home.course());
    assert_eq!(notices(&home), ["terminal_event", "late_event"], "it may say what it likes of later");
    assert_eq!(payload(&home, "implement")["error"], "rate limit exceeded, try again later");
}

#[test]
fn what_comes_of_a_command_must_be_said() {
    for (life, why) in [("end", "payload.outcome is missing"), ("says:perfect end", "perfect")] {
        let home = with_run(&[WRITES, life]);
        assert!(home.course().ends_with("finish review-1 failed; failed"), "{}", home.course());
        let error = payload(&home, "review")["error"].to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(commands(&home).len(), 2, "it is not reminded");
    }
    let mut home = with_run(&[WRITES, "says:changes_requested end", "hang"]);
    assert!(home.news().ends_with("intend implement-2; begin implement-2"), "{}", home.course());
    assert_eq!(commands(&home)[2]["message_id"], "cmd-implement-2-1");
    assert_eq!(commands(&home)[2]["round"], 2);
}

#[test]
fn artifacts_are_what_their_agent_says_or_the_step_fails() {
    let home = with_run(&["writes:code:1 tells:code:0 tells:code:1 end", "hang"]);
    let artifacts = payload(&home, "implement")["artifacts"].clone();
    assert_eq!((artifacts.as_array().map(Vec::len), &artifacts[0]["path"]), (Some(1), &json!("code")));
    for (life, name) in [
        ("writes:code:1 tells:code:0 end", "artifact_changed"),
        ("writes:code:1 tells:none:0 end", "artifact_missing"),
        ("writes:code:1 tells:../code:1 end", "artifact_outside"),
    ] {
        let home = with_run(&[life]);
        assert!(home.course().ends_with("finish implement-1 failed; failed"), "{}", home.course());
        let error = payload(&home, "implement")["error"].to_string();
        assert!(error.contains(name), "{name}: {error}");
    }
}

// I9: nobody is ended for saying nothing.
#[test]
fn silence_is_shown_and_ends_nobody() {
    let mut home = with_run(&["beat hang end", APPROVES, PASSES]);
    let waits = |home: &Home| home.pipelines().standing(home.run).waits;
    home.pass(Duration::from_secs(80));
    assert_eq!(waits(&home), Some(Waits::Agent));
    home.pass(Duration::from_secs(15));
    assert_eq!(waits(&home), Some(Waits::Heartbeat));
    assert!(
        home.held().starts_with("no heartbeat since ") && home.held().contains("busy"),
        "{}",
        home.held()
    );
    home.pass(Duration::from_secs(1800));
    assert_eq!(waits(&home), Some(Waits::Stalled));
    assert!(home.held().contains("cancel its session sess_"), "{}", home.held());
    let locked = home.resume(crate::pipelines::ResumeRun::default()).expect_err("it is at work");
    assert_eq!(locked.code.as_str(), "run_locked");
    home.pass(Duration::from_secs(86_400));
    assert_eq!((home.scripted.living(), home.course().matches("cut").count()), (1, 0));
    home.scripted.go_on();
    home.settle();
    assert_eq!(home.course(), ROUND);
}

#[test]
fn a_stalled_step_is_cut_by_whoever_says_so_and_goes_on_when_they_say_so() {
    let mut home = with_run(&["writes:code:9 hang", WRITES, APPROVES, PASSES]);
    home.pass(Duration::from_secs(1801));
    home.cancel_session().wait_long();
    assert!(home.course().ends_with("cut implement-1 cancelled"), "{}", home.course());
    home.resume(crate::pipelines::ResumeRun::default()).expect("it goes on");
    home.wait_long();
    assert_eq!(home.state().status, RunStatus::Completed, "{}, {}", home.course(), home.held());
}

#[test]
fn a_deadline_that_is_set_ends_the_attempt() {
    let config = config().replacen(r#""agent":"builder","#, r#""agent":"builder","deadline_s":60,"#, 1);
    let mut home = run_with(&["beat hang"], new_run(&config));
    home.pass(Duration::from_secs(59));
    assert!(home.course().ends_with("begin implement-1"), "{}", home.course());
    home.pass(Duration::from_secs(20));
    assert!(home.course().ends_with("finish implement-1 failed; failed"), "{}", home.course());
    assert_eq!(home.scripted.living(), 0);
}

#[test]
fn a_command_that_was_cut_is_sent_again_under_the_same_key() {
    let lives = ["text writes:code:9 beat die", WRITES, APPROVES, PASSES];
    let mut home = with_run(&lives);
    home.wait_long();
    let cut = ROUND.replace(
        "begin implement-1;",
        "begin implement-1; cut implement-1 agent_gone; begin implement-1 #2;",
    );
    assert_eq!(home.course(), cut);
    let commands = commands(&home);
    let ids: Vec<&Value> = commands.iter().map(|command| &command["message_id"]).collect();
    assert_eq!(ids, ["cmd-implement-1-1", "cmd-implement-1-2", "cmd-review-1-1"]);
    let mut again = commands[1].clone();
    again["message_id"] = ids[0].clone();
    assert_eq!(again, commands[0], "all else is the same");
    assert_eq!(home.trees.read("code").as_deref(), Some("1"));
    assert_eq!(counts(&home, "implement").logs, 2, "of all attempts");
}

#[test]
fn an_agent_that_knows_the_key_answers_at_once() {
    let lives = ["cache=yes; writes:code:1 keep die", "cache=yes; writes:code:9 end", APPROVES, PASSES];
    let new = NewRun { on_cut: Some(OnCut::Continue), ..new_run(&config()) };
    let mut home = run_with(&lives, new);
    home.wait_long();
    assert_eq!(home.state().status, RunStatus::Completed, "{}, {}", home.course(), home.held());
    assert_eq!(home.trees.read("code").as_deref(), Some("1"), "the work is there, and was done once");
    assert_eq!(payload(&home, "implement")["summary"], "cached");
    let commands = commands(&home);
    assert_eq!(commands[0]["idempotency_key"], commands[1]["idempotency_key"]);
}

#[test]
fn heartbeats_are_counted_whoever_dies() {
    let mut home = with_run(&["beat text beat hang beat beat end", APPROVES, PASSES]);
    home.restart();
    home.scripted.go_on();
    home.settle();
    assert_eq!(home.course(), ROUND);
    assert_eq!(home.scripted.started(), 3);
    assert_eq!(counts(&home, "implement"), StepCounts { events: 1, heartbeats: 4, logs: 1 });
}

#[test]
fn an_agent_that_answered_while_nobody_was_there_is_read() {
    let mut home = with_run(&["writes:code:1 hang tells:code:1 end again", APPROVES, PASSES]);
    home.daemon_ends();
    home.scripted.go_on();
    home.scripted.kill();
    home.open();
    home.recover().wait_long();
    assert_eq!(home.course(), ROUND);
    assert_eq!(payload(&home, "implement")["artifacts"][0]["path"], "code");
}

#[test]
fn a_command_that_no_log_has_room_for_is_answered_all_the_same() {
    let config = config().replace("Make it so", &"long ".repeat(60_000));
    let mut home = run_with(&["text hang end", APPROVES, PASSES], new_run(&config));
    home.restart();
    home.scripted.go_on();
    home.settle();
    assert_eq!(home.course(), ROUND);
}

/// I4, I11: a daemon that dies at any write, or the machine with it, has no command answered twice and none lost.
#[test]
fn a_daemon_that_dies_at_any_write_of_commands_is_followed_by_one_that_goes_on() {
    const LIVES: &[&str] = &[
        "text beat writes:code:1 beat end again",
        "says:changes_requested end",
        "event writes:code:2 tells:code:2 end",
        "says:approved beat end late",
        PASSES,
        "text end",
    ];
    let mut home = run_with(LIVES, new_run(&config()));
    let all = home.disk.disk.ops();
    assert_eq!(home.state().status, RunStatus::Completed, "{}", home.course());
    let expected: Vec<StepCounts> =
        home.state().steps().filter_map(|step| Some(step.result.as_ref()?.counts)).collect();
    assert!(all > 100, "{all} writes");
    let mut rng = Rng::new(11);
    let every = if std::env::var_os("REKINDLE_TEST_LONG").is_some() { 1 } else { 7 };
    home.daemon_ends();
    for dies_at in (0..all).step_by(every) {
        let mut home = Home::new(LIVES);
        home.start(new_run(&config())).expect("started");
        home.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, dies_at));
        home.settle();
        home.daemon_ends();
        home.disk.disk.clear_faults();
        if dies_at % 2 == 0 {
            home.disk.disk = home.disk.disk.power_cut(&mut rng);
        }
        home.open();
        home.recover().wait_long();
        let what = format!("write {dies_at}: {}, {}", home.course(), home.held());
        assert_eq!(home.state().status, RunStatus::Completed, "{what}");
        assert_eq!(home.course().matches("cut ").count(), 0, "{what}");
        assert_eq!(home.trees.read("code").as_deref(), Some("2"), "{what}");
        let counts: Vec<StepCounts> =
            home.state().steps().filter_map(|step| Some(step.result.as_ref()?.counts)).collect();
        // What an agent says behind its answer is heard if it was not ended before.
        let mine =
            |counts: &[StepCounts]| counts.iter().map(|of| (of.heartbeats, of.logs)).collect::<Vec<_>>();
        assert_eq!(mine(&counts), mine(&expected), "{what}");
        assert_eq!(commands(&home).len(), 4, "{what}");
    }
}
