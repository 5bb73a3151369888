//! Files that are not as a run expects them: told, decided about, and touched only after that.

use rekindle_domain::event::{OnCut, OnDrift};

use super::courses::{APPROVES, PASSES, WRITES};
use super::home::{Home, new_run_on_cut};

/// A run whose first step waits for a word after it was cut and a person has changed something.
fn cut_and_changed() -> Home {
    let mut home = Home::new(&["writes:code:1 die", WRITES, APPROVES, PASSES]);
    home.start(new_run_on_cut(OnCut::Ask)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    home.edit("spec", None);
    home
}

#[test]
fn what_a_person_changed_after_a_cut_is_not_overwritten_unasked() {
    let mut home = cut_and_changed();
    home.resume_with(OnDrift::Stop).expect("it looks");
    home.wait_long();
    assert!(home.course().ends_with("cut implement-1 agent_gone; drift stop"), "{}", home.course());
    assert!(home.held().contains("code, spec"), "{}", home.held());
    assert_eq!(home.trees.read("code").as_deref(), Some("mine"));
    home.restart().wait_long();
    assert!(home.course().ends_with("drift stop"), "once");
}

#[test]
fn files_are_restored_if_somebody_says_so() {
    let mut home = Home::new(&["writes:code:1 die", "text end", APPROVES, PASSES]);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    home.wait_long();
    assert!(home.course().ends_with("drift stop"), "{}", home.course());
    home.resume_with(OnDrift::Restore).expect("it goes on");
    home.wait_long();
    assert!(home.course().contains("drift stop; drift restore; begin implement-1 #2"), "{}", home.course());
    assert_eq!(home.trees.read("code").as_deref(), Some("0"));
    assert!(home.course().ends_with("completed"));
}

#[test]
fn files_are_taken_as_they_are_if_somebody_says_so() {
    let mut home = Home::new(&["writes:code:1 die", "text end", APPROVES, PASSES]);
    home.start(new_run_on_cut(OnCut::Restore)).expect("started");
    home.settle();
    home.edit("code", Some("mine"));
    let key = home.state().current_step().expect("a step").key;
    home.wait_long();
    assert!(home.course().ends_with("drift stop"), "{}", home.course());
    home.resume_with(OnDrift::Accept).expect("it goes on");
    home.wait_long();
    assert!(
        home.course().contains("drift accept; intend implement-1; begin implement-1"),
        "{}",
        home.course()
    );
    assert!(home.course().ends_with("completed"), "{}", home.course());
    let state = home.state();
    let first = state.steps().next().expect("a step");
    assert_ne!(first.key, key, "it is other work");
    assert_eq!(home.trees.read("code").as_deref(), Some("mine"));
}

#[test]
fn files_that_change_between_steps_stop_the_run() {
    let mut home = Home::with_run(&[WRITES, "hang"]);
    // While the review goes on nobody looks; it changed nothing itself, and is held to what is there.
    home.edit("code", Some("mine"));
    home.scripted.kill();
    home.wait_long();
    assert!(home.course().contains("cut review-1 agent_gone"), "{}", home.course());
}

#[test]
fn a_directory_that_is_gone_is_waited_for() {
    let mut home = Home::with_run(&["hang"]);
    *home.trees.gone.lock().expect("no panic") = true;
    home.scripted.kill();
    home.wait_long();
    assert!(home.course().ends_with("cut implement-1 agent_gone"), "{}", home.course());
    assert!(home.held().contains("cannot be read"), "{}", home.held());
    // Nobody need say that it is back.
    *home.trees.gone.lock().expect("no panic") = false;
    home.wait_long();
    assert!(home.course().contains("begin implement-1 #2"), "{}", home.course());
}

#[test]
fn what_is_not_kept_any_more_is_named() {
    let mut home = Home::new(&["writes:code:1 die", "text end"]);
    home.start(new_run_on_cut(OnCut::Ask)).expect("started");
    home.settle();
    home.trees.forget();
    for word in [OnDrift::Stop, OnDrift::Restore] {
        let refused = home.resume_with(word).expect_err("it is not there");
        assert_eq!(refused.code.as_str(), "manifest_missing");
    }
}

// A restore that was cut short is finished, and what lies between two trees is nobody's change.
#[test]
fn a_restore_that_was_cut_short_is_finished() {
    let mut home = Home::new(&["can=nothing; writes:code:1 die", "text end", APPROVES, PASSES]);
    home.start(new_run_on_cut(OnCut::Ask)).expect("started");
    home.settle();
    let from = home.state().current_step().expect("a step").from;
    home.edit("half", Some("on the way"));
    *home.trees.restoring.lock().expect("no panic") = Some(from);
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.course().contains("cut implement-1 agent_gone; begin implement-1 #2"), "{}", home.course());
    assert_eq!(home.trees.read("half"), None);
}
