//! Runs that nobody disturbs: stages in their order, rounds, outcomes, what each agent is told, what is recorded.

use rekindle_domain::id::RunName;
use rekindle_domain::pipeline::{Payload, RunStatus};

use super::home::{CONFIG, Home, new_run};

/// What a round is in which all goes well.
pub(super) const ROUND: &str = "started; intend implement-1; begin implement-1; finish implement-1 completed; intend review-1; begin review-1; \
     finish review-1 approved; intend verify-1; begin verify-1; finish verify-1 completed; completed";

pub(super) const WRITES: &str = "writes:code:1 text end";
pub(super) const APPROVES: &str = "says:approved end";
pub(super) const PASSES: &str = "text end";

fn failed_because(home: &Home) -> String {
    let state = home.state();
    state.ended.as_ref().and_then(|ended| ended.reason.clone()).unwrap_or_default()
}

fn payload(home: &Home, stage: &str) -> String {
    let state = home.state();
    match state.latest_result(stage).and_then(|(_, result)| result.payload.clone()) {
        Some(Payload::Inline(json)) => json.as_json().to_owned(),
        other => panic!("no payload: {other:?}"),
    }
}

// I11: each step is done once, and the run is complete when the ledger says so.
#[test]
fn a_run_goes_through_its_stages_and_is_complete() {
    let mut home = Home::with_run(&[WRITES, APPROVES, PASSES]);
    assert_eq!(home.news(), ROUND);
    assert_eq!(home.scripted.started(), 3);
    assert_eq!(home.scripted.living(), 0, "every agent was ended");
    home.restart().wait_long();
    assert_eq!((home.news().as_str(), home.scripted.started()), ("", 3));
    let state = home.state();
    assert_eq!(state.status, RunStatus::Completed);
    let steps: Vec<bool> =
        state.steps().map(|step| step.result.as_ref().expect("finished").to == step.from).collect();
    assert_eq!(steps, [false, true, true]);
}

#[test]
fn an_agent_is_told_what_its_template_says() {
    let mut home = Home::with_run(&["writes:code:1 text hang"]);
    assert_eq!(home.prompted().trim_end(), "Make it so as it is written");
    home.scripted.go_on();
    home.settle();
    assert!(home.state().last_step().is_some());
    let home = Home::with_run(&[WRITES, "hang"]);
    let prompt = home.prompted();
    assert!(prompt.starts_with("look at changed code\n"), "{prompt}");
    assert!(prompt.contains("`approved`, `changes_requested`"), "{prompt}");
}

#[test]
fn a_review_sends_the_work_back_with_what_it_found() {
    let mut home = Home::with_run(&[WRITES, "says:changes_requested end", "writes:code:2 hang"]);
    let course = "started; intend implement-1; begin implement-1; finish implement-1 completed; intend review-1; begin review-1; \
         finish review-1 changes_requested; intend implement-2; begin implement-2";
    assert_eq!(home.news(), course);
    assert!(home.prompted().ends_with("it is changes_requested"), "{}", home.prompted());
}

#[test]
fn rounds_are_bounded() {
    let again = "says:changes_requested end";
    let mut home = Home::with_run(&[WRITES, again, "writes:code:2 end", again]);
    assert!(home.news().ends_with("finish review-2 changes_requested; failed"), "{}", home.course());
    assert!(failed_because(&home).starts_with("max_rounds"), "{}", failed_because(&home));
    assert_eq!(home.scripted.living(), 0);
}

#[test]
fn a_check_that_fails_leads_where_its_stage_says() {
    let mut home = Home::with_run(&[WRITES, APPROVES, "text exit", "hang"]);
    assert!(
        home.news().ends_with("finish verify-1 failed; intend implement-2; begin implement-2"),
        "{}",
        home.course()
    );
    assert!(payload(&home, "verify").contains(r#""findings":"hello""#), "{}", payload(&home, "verify"));
}

#[test]
fn a_check_without_a_way_on_fails_the_run() {
    let config = CONFIG.replace(r#","on_fail":"implement""#, "");
    let mut home = Home::new(&[WRITES, APPROVES, "text exit"]);
    home.start(new_run(&config)).expect("started");
    home.settle();
    assert!(home.news().ends_with("finish verify-1 failed; failed"), "{}", home.course());
    assert_eq!(failed_because(&home), "step verify-1 failed");
}

#[test]
fn a_stage_that_must_leave_files_alone_is_held_to_it() {
    let mut home = Home::with_run(&[WRITES, "writes:code:9 writes:more:1 says:approved end"]);
    assert!(home.news().ends_with("finish review-1 failed; failed"), "{}", home.course());
    assert!(payload(&home, "review").contains("must not change: code, more"), "{}", payload(&home, "review"));
    assert_eq!(home.trees.read("code").as_deref(), Some("9"), "the files stay as they are");
}

#[test]
fn an_agent_that_names_no_outcome_is_reminded_once() {
    let mut home = Home::with_run(&[WRITES, "text end; says:approved end", PASSES]);
    assert_eq!(home.news(), ROUND.replace("begin review-1", "begin review-1; remind review-1"));
    assert_eq!(home.scripted.started(), 3, "by the same agent");
    for (second, why) in
        [("text end", "did not end with a fenced json block"), ("says:perfect end", "perfect")]
    {
        let life: &'static str = format!("text end; {second}").leak();
        let mut home = Home::with_run(&[WRITES, life]);
        assert!(
            home.news().ends_with("remind review-1; finish review-1 failed; failed"),
            "{}",
            home.course()
        );
        assert!(payload(&home, "review").contains(why), "{}", payload(&home, "review"));
    }
}

#[test]
fn a_reminder_reaches_an_agent_that_is_not_there_any_more() {
    let mut home = Home::with_run(&[WRITES, "text end; hang"]);
    assert!(home.news().ends_with("remind review-1"), "{}", home.course());
    home.scripted.kill();
    home.settle();
    assert!(home.news().starts_with("cut review-1 agent_gone"), "{}", home.course());
}

#[test]
fn an_agent_that_asks_is_waited_for() {
    let mut home = Home::with_run(&["ask text end"]);
    home.pass(std::time::Duration::from_secs(7200));
    assert!(home.news().ends_with("begin implement-1"), "what it waits for people does not count");
    assert_eq!(home.held(), "its agent has a question: answer it");
}

#[test]
fn an_attempt_that_takes_too_long_is_ended_and_fails() {
    let mut home = Home::new(&["writes:code:1 hang"]);
    let config = CONFIG.replacen(r#""agent":"builder","#, r#""agent":"builder","deadline_s":1800,"#, 1);
    home.start(new_run(&config)).expect("started");
    home.pass(std::time::Duration::from_secs(1790));
    assert!(home.news().ends_with("begin implement-1"));
    home.pass(std::time::Duration::from_secs(60));
    assert_eq!(home.news(), "finish implement-1 failed; failed");
    assert!(payload(&home, "implement").contains("deadline"), "{}", payload(&home, "implement"));
}

#[test]
fn an_agent_that_answers_with_an_error_fails_its_step() {
    let mut home = Home::with_run(&["text no"]);
    assert!(home.news().ends_with("finish implement-1 failed; failed"), "{}", home.course());
}

#[test]
fn two_runs_work_in_a_directory_one_after_the_other() {
    let mut home = Home::with_run(&["writes:code:1 hang", "hang"]);
    let first = home.run;
    home.start(new_run(CONFIG)).expect("started");
    home.settle();
    assert_eq!(home.course(), "started; intend implement-1");
    assert_eq!(
        home.held(),
        format!("run {} is working in its directory", RunName::of(first).expect("a name"))
    );
    home.edit("code", Some("mine"));
    let second = std::mem::replace(&mut home.run, first);
    home.abort().expect("aborted");
    home.wait_long();
    home.run = second;
    assert_eq!(home.course(), "started; intend implement-1; drift stop", "{}", home.held());
}
