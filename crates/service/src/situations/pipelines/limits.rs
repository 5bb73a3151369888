//! Runs whose steps wait for their places, and runs with a budget.

use std::time::Duration;

use rekindle_domain::event::Budget;
use rekindle_domain::id::TaskId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;
use rekindle_domain::pipeline::next_step::Waits;

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run};
use crate::pipelines::{NewRun, ResumeRun, StepsOfRuns};
use crate::tasks::{PlaceAnswer, StepPlaces, WantedPlace};

/// Who decides about places, which the test is.
fn scheduler(home: &Home) -> StepsOfRuns {
    home.pipelines().ask_scheduler(Box::new(|| {}));
    StepsOfRuns(std::sync::Arc::downgrade(&home.pipelines()))
}

fn task(home: &Home) -> TaskId {
    TaskId::from_ulid(home.run.to_ulid().expect("a number"))
}

fn wanted(steps: &StepsOfRuns) -> Vec<WantedPlace> {
    steps.see().wanted
}

fn waits(home: &Home) -> Option<Waits> {
    home.pipelines().standing(home.run).waits
}

#[test]
fn a_step_begins_when_there_is_a_place_for_it() {
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    let steps = scheduler(&home);
    home.start(new_run(CONFIG)).expect("started");
    home.wait_long();
    assert_eq!((home.news().as_str(), home.scripted.started()), ("started; intend implement-1", 0));
    let asked = wanted(&steps);
    assert_eq!((asked.len(), asked[0].task, asked[0].agent.as_str()), (1, task(&home), "builder"));
    assert!(!asked[0].has_directory && !asked[0].granted && steps.is_asked());
    assert_eq!(waits(&home), Some(Waits::Place));
    // Why is said where people look.
    let why = "somebody works there".to_owned();
    steps.tell(task(&home), PlaceAnswer::Waits { why: why.clone(), is_directory: true });
    assert_eq!((waits(&home), home.held()), (Some(Waits::Directory), why));
    steps.tell(task(&home), PlaceAnswer::Granted);
    assert!(!steps.is_asked() && wanted(&steps)[0].granted, "it has it until its attempt has begun");
    home.settle();
    // The next step asks anew; its directory is the run's meanwhile.
    assert!(home.news().ends_with("finish implement-1 completed; intend review-1"), "{}", home.course());
    let asked = wanted(&steps);
    assert_eq!(
        (asked[0].agent.as_str(), asked[0].has_directory, asked[0].granted),
        ("reviewer", true, false)
    );
    assert_eq!(steps.see().held.len(), 1);
    // Whoever died has asked for nothing; the next one asks.
    home.daemon_ends();
    home.open();
    let steps = scheduler(&home);
    home.recover();
    assert_eq!((home.scripted.started(), wanted(&steps).len()), (1, 1));
}

#[test]
fn a_run_that_ends_or_rests_asks_for_no_place() {
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    let steps = scheduler(&home);
    home.start(new_run(CONFIG)).expect("started");
    home.settle();
    assert_eq!(wanted(&steps).len(), 1);
    home.abort().expect("aborted");
    assert_eq!((wanted(&steps).len(), steps.see().held.len()), (0, 0));
    // One that was given a place and finds other files than it expects gives it back.
    home.start(new_run(CONFIG)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    steps.tell(task(&home), PlaceAnswer::Granted);
    home.settle();
    assert!(home.news().ends_with("drift stop"), "{}", home.course());
    assert_eq!((wanted(&steps).len(), steps.see().held.len()), (0, 0));
}

fn with_budget(budget: Budget) -> NewRun {
    NewRun { budget: Some(budget), ..new_run(CONFIG) }
}

fn reason(home: &Home) -> String {
    home.state().ended.as_ref().and_then(|ended| ended.reason.clone()).unwrap_or_default()
}

#[test]
fn a_run_ends_when_its_time_is_used_up() {
    let mut home = Home::new(&["hang", WRITES, APPROVES, PASSES]);
    home.start(with_budget(Budget { wall_s: Some(60), ..Budget::default() })).expect("started");
    home.pass(Duration::from_secs(47));
    assert!(home.news().ends_with("begin implement-1"), "{}", home.course());
    // Most of it is used: that is said once, whoever looks again.
    home.pass(Duration::from_secs(3));
    assert_eq!(home.news(), "budget", "{}", home.course());
    home.restart();
    home.pass(Duration::from_secs(5));
    assert_eq!(home.news(), "", "{}", home.course());
    home.wait_long();
    assert_eq!(home.news(), "finish implement-1 failed; failed", "{}", home.course());
    assert_eq!((home.state().status, home.scripted.living()), (RunStatus::Failed, 0));
    // Whoever has it go on all the same grants as much again.
    let wish = ResumeWish { force: true, accept_config: false };
    home.resume(ResumeRun { wish, ..ResumeRun::default() }).expect("it goes on");
    home.wait_long();
    assert_eq!(home.state().status, RunStatus::Completed, "{}", home.course());
}

#[test]
fn turns_of_all_steps_and_attempts_count() {
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    home.start(with_budget(Budget { turns: Some(3), ..Budget::default() })).expect("started");
    home.settle();
    assert_eq!(home.news(), ROUND);
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    home.start(with_budget(Budget { turns: Some(2), ..Budget::default() })).expect("started");
    home.settle();
    assert!(home.news().ends_with("finish review-1 approved; intend verify-1; failed"), "{}", home.course());
    assert_eq!(reason(&home), "budget: turns");
    // A later daemon knows what was used before it.
    home.restart();
    assert_eq!((home.scripted.started(), reason(&home).as_str()), (2, "budget: turns"));
}

#[test]
fn what_was_used_is_known_to_the_next_daemon() {
    let mut home = Home::new(&["hang"]);
    home.start(with_budget(Budget { wall_s: Some(60), ..Budget::default() })).expect("started");
    home.pass(Duration::from_secs(50));
    home.restart();
    assert_eq!(home.scripted.living(), 1, "it was taken over");
    home.pass(Duration::from_secs(20));
    assert_eq!((home.scripted.living(), home.state().status), (0, RunStatus::Failed), "{}", home.course());
}
