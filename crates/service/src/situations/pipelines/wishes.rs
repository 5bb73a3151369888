//! Runs that somebody resumes or aborts.

use rekindle_domain::event::{OnDrift, ProjectConfig};
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home};
use crate::pipelines::ResumeRun;

fn force() -> ResumeRun {
    ResumeRun { wish: ResumeWish { force: true, accept_config: false }, ..ResumeRun::default() }
}

fn with_config(change: impl FnOnce(&mut ProjectConfig)) -> ResumeRun {
    let mut config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
    change(&mut config);
    ResumeRun { config: Some(config), ..force() }
}

#[test]
fn a_complete_run_is_resumed_without_doing_anything() {
    let mut home = Home::with_run(&[WRITES, APPROVES, PASSES]);
    assert_eq!(home.news(), ROUND);
    for asked in [ResumeRun::default(), force()] {
        home.resume(asked).expect("nothing to do");
    }
    assert_eq!(home.news(), "");
    assert_eq!(home.abort().expect_err("it is over").code.as_str(), "run_completed");
}

#[test]
fn a_run_that_failed_goes_on_if_that_is_forced() {
    let mut home = Home::with_run(&[WRITES, APPROVES, "exit", WRITES, "says:approved hang"]);
    home.abort().expect("aborted");
    home.wait_long();
    let mut home = Home::with_run(&["text no", WRITES, APPROVES, PASSES]);
    assert!(home.news().ends_with("failed"));
    assert_eq!(home.resume(ResumeRun::default()).expect_err("it failed").code.as_str(), "run_failed");
    assert_eq!(home.abort().expect_err("it failed").code.as_str(), "run_failed");
    home.resume(force()).expect("it goes on");
    home.wait_long();
    assert!(home.news().starts_with("reopened; intend implement-2; begin implement-2"), "{}", home.course());
    assert_eq!(home.state().status, RunStatus::Completed);
}

// I13: an abort is durable, and reaches the session of the step.
#[test]
fn an_abort_ends_the_step_and_goes_on_only_if_that_is_forced() {
    let mut home = Home::with_run(&["writes:code:1 hang", WRITES, APPROVES, PASSES]);
    home.abort().expect("aborted");
    home.wait_long();
    assert!(home.news().ends_with("begin implement-1; aborted"));
    assert_eq!(home.scripted.living(), 0);
    assert!(home.session().run.as_ref().is_some_and(|run| run.end.is_some()));
    home.abort().expect("it is aborted already");
    home.restart().wait_long();
    assert_eq!((home.news().as_str(), home.scripted.started()), ("", 1));
    assert_eq!(home.resume(ResumeRun::default()).expect_err("aborted").code.as_str(), "run_aborted");
    home.resume(force()).expect("it goes on");
    home.wait_long();
    assert!(
        home.news().starts_with("reopened; cut implement-1 cancelled; begin implement-1 #2"),
        "{}",
        home.course()
    );
    assert_eq!(home.state().status, RunStatus::Completed);
}

// The daemon dies between the record and what follows from it.
#[test]
fn an_abort_is_carried_out_by_whoever_comes_next() {
    let mut home = Home::with_run(&["hang"]);
    let state = home.state();
    let aborted = rekindle_domain::pipeline::compose::abort(None, "user:ada");
    home.daemon_ends();
    home.open();
    home.store().open_pipeline(home.run).expect("readable");
    let append = rekindle_store::commit::Append::durable(state.id, vec![aborted]);
    home.store().append(append).expect("recorded");
    home.recover().wait_long();
    assert_eq!(home.scripted.living(), 0, "{}", home.course());
}

#[test]
fn a_run_that_is_at_work_is_not_resumed() {
    let mut home = Home::with_run(&["hang"]);
    let refused = home.resume_with(OnDrift::Accept).expect_err("it works");
    assert_eq!(refused.code.as_str(), "run_locked");
    assert!(refused.text().contains("pid"), "{}", refused.text());
}

#[test]
fn what_has_changed_in_the_configuration_is_named() {
    let mut home = Home::with_run(&[WRITES, "text no", WRITES, APPROVES, PASSES]);
    assert!(home.news().ends_with("failed"));
    for (asked, code) in [
        (with_config(|config| config.tasks.clear()), "task_missing"),
        (with_config(|config| drop(config.agents.remove("builder"))), "agent_changed"),
        (with_config(|config| config.tasks[0].goal = "Make it other".into()), "config_changed"),
    ] {
        assert_eq!(home.resume(asked).expect_err(code).code.as_str(), code);
    }
    assert_eq!(home.news(), "");
    let mut asked = with_config(|config| config.tasks[0].goal = "Make it other".into());
    asked.wish.accept_config = true;
    home.resume(asked).expect("it was accepted");
    assert!(home.news().starts_with("reopened; intend review-2"), "{}", home.course());
}

#[test]
fn a_run_that_is_not_there_is_unknown() {
    let home = Home::new(&[]);
    let nobody = rekindle_domain::id::RunName::mint(1, 1).pipeline_id();
    let resume = || home.pipelines().resume(nobody, ResumeRun::default()).expect_err("there is none");
    assert_eq!(resume().code.as_str(), "run_unknown");
    let aborted = home.pipelines().abort(nobody, None, "user:ada").expect_err("there is none");
    assert_eq!(aborted.code.as_str(), "run_unknown");
    // Its directory is there, and its ledger is not.
    home.store().create_pipeline(nobody).expect("made");
    assert_eq!(resume().code.as_str(), "ledger_missing");
}
