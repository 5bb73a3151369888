//! Runs that somebody resumes or aborts.

use rekindle_domain::event::{OnCut, OnDrift, ProjectConfig};
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run_on_cut};
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

// The first of them has the run: what the second one says about its files is not done.
#[test]
fn of_two_who_resume_a_run_at_once_the_second_is_told_who_has_it() {
    let mut home = Home::new(&["writes:code:1 die", "hang", "text end"]);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    home.wait_long();
    assert!(home.course().ends_with("drift stop"), "{}", home.course());
    let [first, second] = home.resume_twice([OnDrift::Restore, OnDrift::Accept]);
    first.expect("it goes on");
    let refused = second.expect_err("somebody was first");
    assert_eq!(refused.code.as_str(), "run_locked");
    assert!(refused.text().contains("pid"), "{}", refused.text());
    home.wait_long();
    assert!(home.course().ends_with("drift stop; drift restore; begin implement-1 #2"), "{}", home.course());
    assert_eq!(home.trees.read("code").as_deref(), Some("0"));
    // Of one that has failed it is reopened once.
    let mut home = Home::with_run(&["text no", "hang"]);
    let forced = home.resume(force());
    forced.expect("it goes on");
    assert_eq!(home.resume(force()).expect_err("it is at work").code.as_str(), "run_locked");
    assert_eq!(home.course().matches("reopened").count(), 1, "{}", home.course());
}

// I13: a step that was cut is not tried again, nor its files touched, once somebody has said that it is enough.
#[test]
fn a_run_that_is_aborted_while_its_step_is_cut_stays_as_it_is() {
    let lives = ["writes:code:1 die", "text end", APPROVES, PASSES];
    let check = |home: &mut Home, code: &str| {
        let course = home.course();
        assert!(course.ends_with("; aborted"), "{course}");
        home.wait_long().restart().wait_long();
        assert_eq!((home.course(), home.scripted.started(), home.scripted.living()), (course, 1, 0));
        assert_eq!(home.trees.read("code").as_deref(), Some(code));
        let word = ResumeRun { on_drift: Some(OnDrift::Restore), ..force() };
        home.resume(word).expect("it goes on");
        home.wait_long();
        assert!(home.course().ends_with("completed"), "{}", home.course());
        assert_eq!(home.trees.read("code").as_deref(), Some("0"));
    };
    // It would be tried again in a moment.
    let mut home = Home::new(&lives);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    assert!(home.course().ends_with("cut implement-1 agent_gone"), "{}", home.course());
    home.abort().expect("aborted");
    check(&mut home, "1");
    // It waits for a word about its files.
    let mut home = Home::new(&lives);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    home.wait_long();
    assert!(home.course().ends_with("drift stop"), "{}", home.course());
    home.abort().expect("aborted");
    check(&mut home, "mine");
    // Everything has died, and the first thing that the next daemon hears is that it is enough.
    let mut home = Home::new(&["writes:code:1 hang", "text end", APPROVES, PASSES]);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    home.daemon_ends();
    home.scripted.lose();
    home.open();
    home.abort().expect("aborted");
    check(&mut home, "1");
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
