//! Drift: what was changed while no agent was there is found, recorded and told to the next one, and to nobody else.

use std::time::Duration;

use rekindle_domain::event::{Drift, OnUncertain, ResumePolicy};
use serde_json::Value;

use super::checkpoints::Captured;
use super::home::Setup;

/// Names what a record says that drifted.
pub(super) fn what_drifted(record: &Value) -> String {
    let fields = record.as_object().into_iter().flat_map(|fields| fields.keys());
    let mut what: Vec<&str> = fields.map(String::as_str).collect();
    what.retain(|field| !["seq", "ts", "kind", "h", "run_id", "more"].contains(field));
    what.sort_unstable();
    what.join(" ")
}

fn asks() -> Setup {
    Setup::policy(ResumePolicy::Ask, OnUncertain::Ask)
}

/// A session whose turn was cut, and that waits for a person.
fn cut(setup: Setup, next: &'static str) -> Captured {
    let mut at = Captured::with(setup, &["text die", next]);
    at.home.send().news();
    at
}

fn drift(at: &Captured) -> Option<Drift> {
    at.home.shown().run.expect("a run").drift
}

// I15
#[test]
fn files_that_were_changed_meanwhile_are_told_to_the_person_and_to_the_agent() {
    let mut at = cut(asks(), "");
    at.write("a.txt", "by a person\n");
    std::fs::remove_file(at.path("b.txt")).expect("removed");
    at.home.resume(&[]).expect("resumed");
    let news = "run.started attempt=2; run.checkpoint start; agent.launching; session.restored continued; run.drift files; \
                input.queued prompt; message.agent; run.completed; run.checkpoint end";
    let told = at.home.news();
    assert!(told.starts_with(news), "{told}");
    let files = drift(&at).expect("shown").files.expect("files");
    assert_eq!(files.total, 2, "{files:?}");
    let prompt = at.home.prompted();
    let words = "Changed files, to be read again before you rely on them: a.txt, b.txt (deleted).\n";
    assert!(prompt.contains(words), "{prompt}");
    // The next turn is given to one that was there.
    at.write("a.txt", "again\n");
    at.home.send();
    assert_eq!((at.home.count("run.drift"), drift(&at)), (1, None));
    assert_eq!(at.home.prompted(), "do it");
}

#[test]
fn nothing_is_said_where_nothing_was_changed() {
    let mut at = cut(asks(), "");
    at.home.resume(&[]).expect("resumed");
    assert_eq!((at.home.count("run.drift"), at.home.count("run.completed")), (0, 1));
    assert!(!at.home.prompted().contains("Since the last turn"), "{}", at.home.prompted());
}

#[test]
fn a_message_to_an_agent_that_brings_its_session_back_comes_with_the_drift_alone() {
    let mut at = Captured::new(&["text end", "text end"]);
    at.home.send();
    at.home.scripted.kill();
    at.home.settle().news();
    at.write("c.txt", "new\n");
    at.home.send();
    let news = at.home.news();
    assert!(news.contains("session.restored continued; run.drift files; input.queued prompt"), "{news}");
    let told = at.home.prompted();
    let words = "[Resume Context]\n\nSince the last turn, and not by you:\n- Changed files, to be read again before you rely on \
                 them: c.txt (new).\n[End of Resume Context]\n\ndo it";
    assert_eq!(told, words);
}

#[test]
fn another_agent_is_told_to_be_another() {
    let mut at = cut(asks(), "name=renamed");
    at.home.resume(&[]).expect("resumed");
    let agent = drift(&at).expect("shown").agent.expect("another");
    assert_eq!((agent.from.as_str(), agent.to.as_str()), ("scripted 1.0.0", "renamed 1.0.0"));
    assert!(at.home.prompted().contains("You were scripted 1.0.0 and are renamed 1.0.0."));
}

// I12: a capture that takes too long holds up nobody, and is said.
#[test]
fn a_comparison_that_takes_too_long_is_given_up_and_said() {
    let mut at = cut(asks(), "");
    at.write("a.txt", "by a person\n");
    at.home.captures.set_hang(true);
    at.home.resume(&[]).expect("resumed");
    at.home.pass(Duration::from_secs(29));
    assert_eq!(at.home.count("input.queued prompt"), 0);
    assert_eq!(at.home.scripted.given("prompt"), 1);
    at.home.captures.set_hang(false);
    at.home.pass(Duration::from_secs(1));
    assert_eq!((at.home.scripted.given("prompt"), at.home.count("run.completed")), (2, 1));
    let why = drift(&at).expect("shown").files_unknown;
    assert_eq!(why.as_deref(), Some("the checkpoint before this turn was not taken (timed out)"));
    assert!(at.home.prompted().contains("Files may have changed; which is not known"));
    at.home.captures.let_go();
}

// Of what was changed while nobody looked at all, nobody can say by whom.
#[test]
fn files_of_a_turn_that_ended_while_nobody_was_there_are_told_as_anybodys() {
    let mut at = Captured::with(asks(), &["hang text end", ""]);
    at.home.send().news();
    at.home.daemon_ends();
    at.home.scripted.lose();
    at.write("c.txt", "by somebody\n");
    at.home.restart();
    at.home.resume(&[]).expect("resumed");
    assert_eq!(at.home.count("run.drift"), 0, "{}", at.home.course());
    let told = at.home.prompted();
    assert!(told.contains("by it or by somebody else") && told.contains("/c.txt\n"), "{told}");
}

#[test]
fn a_command_that_runs_again_has_its_drift_recorded_before_its_launch() {
    let mut at =
        Captured::with(Setup { options: asks().options, ..Setup::command() }, &["text die", "text end"]);
    at.home.send().news();
    at.write("a.txt", "by a person\n");
    at.home.resume(&[]).expect("resumed");
    let news = at.home.wait_long().news();
    assert!(
        news.starts_with("run.started attempt=2; run.checkpoint start; run.drift files; agent.launching"),
        "{news}"
    );
    assert!(drift(&at).is_some());
}

#[test]
fn without_checkpoints_nothing_is_said_of_files() {
    let mut at = cut(asks(), "");
    at.home.captures.set_on(false);
    at.write("a.txt", "by a person\n");
    at.home.resume(&[]).expect("resumed");
    assert_eq!((at.home.count("run.drift"), at.home.count("run.completed")), (0, 1));
}
