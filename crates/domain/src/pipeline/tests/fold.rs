//! What may follow in a ledger, and what follows a step.

use std::sync::Arc;

use super::script::{Ledger, id, pipeline_id, tree};
use crate::budget::Used;
use crate::event::{Budget, BudgetScope, Event, OnDrift, PipelineBudget, PipelineStarted};
use crate::pipeline::{FailReason, Following, PipelineState, RunStatus};
use crate::time::Timestamp;

/// A run up to a finished review of the first round.
const REVIEWED: &str = "start; intend implement-1; began; finish completed; intend review-1; began;";

fn refused(script: &str, text: &str, why: &str) {
    let mut ledger = Ledger::of(script);
    let before = ledger.state.clone();
    assert_eq!(ledger.push(text), Err(why.to_owned()), "{script} {text}");
    assert_eq!(ledger.state, before, "a refused record changes nothing: {script} {text}");
}

fn follows(script: &str, following: Following) {
    assert_eq!(Ledger::of(script).state.following(), following, "{script}");
}

#[test]
fn a_run_goes_through_its_stages_and_is_complete_when_that_is_recorded() {
    let script = format!(
        "{REVIEWED} finish approved; intend verify-1; began; finish completed; intend document-1; began; finish completed to=9"
    );
    let mut ledger = Ledger::of(&script);
    assert_eq!((ledger.state.status, ledger.state.following()), (RunStatus::Running, Following::Complete));
    ledger.push("complete").expect("all stages are done");
    assert_eq!(ledger.state.status, RunStatus::Completed);
    assert_eq!(ledger.state.expected_tree(), Some(tree(9)));
    let counts = ledger.state.counts;
    assert_eq!((counts.commands, counts.terminal_events), (4, 4));
    assert_eq!((counts.said.events, counts.said.heartbeats, counts.said.logs), (4, 8, 12));
}

#[test]
fn an_outcome_decides_what_follows() {
    let step = |text: &str| Following::Step(id(text));
    follows("start", step("implement-1"));
    follows("start; intend implement-1", Following::Unfinished);
    follows("start; intend implement-1; began; interrupt agent_gone", Following::Unfinished);
    follows("start; intend implement-1; began; finish completed", step("review-1"));
    let failed = |text: &str| Following::Fail(FailReason::StepFailed(id(text)));
    follows("start; intend implement-1; began; finish failed", failed("implement-1"));
    follows(&format!("{REVIEWED} finish approved"), step("verify-1"));
    follows(&format!("{REVIEWED} finish changes_requested"), step("implement-2"));
    // Ahead in the same round.
    follows(&format!("{REVIEWED} finish trivial"), step("document-1"));
    let hopeless = Following::Fail(FailReason::Outcome(id("review-1"), "hopeless".into()));
    follows(&format!("{REVIEWED} finish hopeless"), hopeless);
    follows(&format!("{REVIEWED} finish failed to=9"), failed("review-1"));
    let verified = format!("{REVIEWED} finish approved; intend verify-1; began;");
    follows(&format!("{verified} finish failed"), step("implement-2"));
    follows(
        &format!("{verified} finish completed; intend document-1; began; finish failed"),
        step("document-2"),
    );
}

#[test]
fn rounds_are_counted_by_jumps_back_and_come_to_an_end() {
    let again = "finish changes_requested;";
    let round = |n: u32| format!("intend implement-{n}; began; finish completed; intend review-{n}; began;");
    let mut script = format!("start; {} {again} {} {again} {}", round(1), round(2), round(3));
    assert_eq!(Ledger::of(&script).state.round(), 3);
    script.push_str(again);
    follows(&script, Following::Fail(FailReason::Rounds(3)));
    refused(&script, "intend implement-4", "no step follows");
    refused(&script, "complete", "not all of its stages are done");
    // Whoever wants it to go on gives it as many rounds again.
    script.push_str("fail; reopen;");
    follows(&script, Following::Step(id("implement-4")));
    for n in 4..=6 {
        script.push_str(&format!("{} {again}", round(n)));
    }
    follows(&script, Following::Fail(FailReason::Rounds(6)));
}

/// I11: what failed is done again as a step of its own, in a round of its own.
#[test]
fn a_run_that_goes_on_after_its_end_repeats_no_finished_step() {
    let failed = "start; intend implement-1; began; finish failed; fail;";
    refused(failed, "intend implement-1", "the run is failed");
    follows(&format!("{failed} reopen"), Following::Step(id("implement-2")));
    refused(&format!("{failed} reopen"), "intend implement-1", "implement-2 is the next step");
    // It fails again, and is not done a third time unless somebody says so.
    let again = format!("{failed} reopen; intend implement-2; began; finish failed");
    follows(&again, Following::Fail(FailReason::StepFailed(id("implement-2"))));
    // What was not finished goes on as what it was.
    let cut = "start; intend implement-1; began; abort; reopen;";
    follows(cut, Following::Unfinished);
    assert!(Ledger::of(cut).step().open_attempt().is_some());
    let unfinished =
        "start; intend implement-1; began; interrupt agent_gone; fail; reopen; began; finish failed";
    follows(unfinished, Following::Fail(FailReason::StepFailed(id("implement-1"))));
    refused("start; abort; reopen", "reopen", "the run is running");
    let done = format!("{REVIEWED} finish trivial; intend document-1; began; finish completed; complete;");
    refused(&done, "reopen", "the run is completed");
    refused(&done, "abort", "the run is completed");
}

#[test]
fn that_most_of_a_budget_is_used_is_said_once_for_each_grant() {
    let began = "start; intend implement-1; began; budget;";
    refused(began, "budget", "that was said before");
    refused(&format!("{began} interrupt agent_gone; began"), "budget", "that was said before");
    refused("start; abort", "budget", "the run is aborted");
    let again = format!("{began} abort; reopen;");
    assert!(Ledger::of(&again).state.budget_noted.is_none());
    refused(&format!("{again} budget"), "budget", "that was said before");

    let mut state = Ledger::of("start; intend implement-1; began").state;
    let used = |tokens| Used { tokens: Some(tokens), ..Used::default() };
    assert_eq!(state.budget_notice(&used(90)), None, "it has none");
    let mut started = state.started.as_deref().expect("started").clone();
    started.budget = Some(Budget { tokens: Some(100), ..Budget::default() });
    state.started = Some(Arc::new(started));
    assert_eq!(state.budget_notice(&used(79)), None);
    let notice = state.budget_notice(&used(80)).expect("most of it");
    assert_eq!((notice.scope, notice.used, notice.limit), (BudgetScope::Run, 80.0, 100.0));
    assert_eq!(state.budget_notice(&used(100)), None, "all of it: the run ends");
    state.apply(Timestamp::from_millis(1), &Event::PipelineBudget(PipelineBudget { notice })).expect("noted");
    assert_eq!(state.budget_notice(&used(90)), None, "that was said");
}

#[test]
fn what_cannot_follow_is_refused_and_changes_nothing() {
    let intended = "start; intend implement-1;";
    let began = "start; intend implement-1; began;";
    let cut = "start; intend implement-1; began; interrupt agent_gone;";
    for (script, text, why) in [
        ("", "intend implement-1", "a ledger begins with pipeline.started"),
        ("", "complete", "a ledger begins with pipeline.started"),
        ("", "reopen", "a ledger begins with pipeline.started"),
        ("start", "start", "it was started before"),
        ("start", "intend review-1", "implement-1 is the next step"),
        ("start", "intend implement-2", "implement-1 is the next step"),
        ("start", "intend implement-1 from=9", "implement-1 does not begin with what was there before it"),
        ("start", "began", "no step is meant to be done"),
        ("start", "complete", "not all of its stages are done"),
        (intended, "intend implement-1", "implement-1 is meant to be done already"),
        (intended, "intend review-1", "the step before it is not finished"),
        (intended, "began attempt=2", "attempt 1 is the next one"),
        (intended, "remind attempt=1", "there is nobody to be reminded"),
        (intended, "finish completed", "nobody works at it"),
        (intended, "interrupt agent_gone attempt=1", "attempt 1 does not go on"),
        (intended, "drift stop found=9 expected=2", "another tree is expected"),
        (began, "began", "attempt 1 continues"),
        (began, "intend implement-1 from=9", "implement-1 is meant to be done already"),
        (began, "finish completed key=9", "implement-1 has another key"),
        (began, "finish approved", "\"approved\" is no outcome of implement"),
        (began, "cached completed", "somebody works at it"),
        (began, "drift stop found=9", "somebody works at it"),
        (began, "interrupt agent_gone attempt=2", "attempt 2 does not go on"),
        (began, "remind session=9", "another attempt goes on"),
        (began, "fail", "somebody works at it"),
        (REVIEWED, "finish completed", "\"completed\" is no outcome of review"),
        (REVIEWED, "finish approved to=9", "review must leave files alone, and did not"),
        (cut, "finish completed", "nobody works at it"),
        (cut, "interrupt agent_gone", "attempt 1 does not go on"),
        (cut, "remind", "there is nobody to be reminded"),
        (cut, "drift accept found=9; intend implement-1 from=8", ""),
    ] {
        match text.split_once("; ") {
            Some((first, then)) => {
                refused(&format!("{script} {first}"), then, "implement-1 is meant to be done already");
            }
            None => refused(script, text, why),
        }
    }
    refused("start; intend implement-1; began; remind", "remind", "its agent was reminded before");
}

#[test]
fn attempts_follow_each_other_and_a_decision_about_files_counts_for_the_next() {
    let mut ledger = Ledger::of("start; intend implement-1; began; interrupt agent_gone; began session=1");
    let step = ledger.step();
    assert_eq!((step.attempts, step.open_attempt().is_some(), step.cut()), (2, true, None));
    ledger.push("interrupt cancelled").expect("it was cut again");
    ledger.push("drift accept found=9").expect("nobody works");
    assert_eq!(ledger.step().drift.map(|drift| drift.decision), Some(OnDrift::Accept));
    let key = ledger.step().key;
    ledger.push("intend implement-1 from=9").expect("it begins with what was found");
    let step = ledger.step();
    assert_eq!((step.from, step.attempts, step.cut(), step.drift), (tree(9), 2, None, None));
    assert_ne!(step.key, key);
    ledger.push("began").expect("the third attempt");
    ledger.push("finish completed").expect("it is done");
    assert_eq!(ledger.state.steps().count(), 1);
    // A result that was there before counts as no command, and as no result of anybody.
    let cached = Ledger::of("start; intend implement-1; cached completed").state;
    assert_eq!((cached.counts.commands, cached.counts.terminal_events), (0, 0));
    let after_cut = Ledger::of("start; intend implement-1; began; interrupt agent_gone; cached completed");
    assert_eq!(after_cut.state.following(), Following::Step(id("review-1")));
}

#[test]
fn what_a_newer_version_wrote_passes_and_what_belongs_elsewhere_does_not() {
    let newer = Event::read("galaxy.merged", "{}").expect("kept");
    let mut ledger = Ledger::of("start");
    let before = ledger.state.clone();
    assert_eq!(ledger.take(&newer), Ok(()));
    assert_eq!(ledger.state, before);
    let elsewhere = Event::read("session.closed", "{}").expect("an event");
    let why = ledger.take(&elsewhere).expect_err("it is a session's");
    assert_eq!(why, "it does not belong into the ledger of a pipeline run");
    // A run of a pipeline that there is not cannot go on, and is not started.
    let mut started: PipelineStarted<'_> = super::script::started(None);
    started.pipeline = "other".into();
    let refused = PipelineState::empty(pipeline_id()).apply(super::script::at(1), &started.into());
    assert_eq!(refused.expect_err("no stages").why, "its configuration has no stages of other");
}

/// Taking a copy, for whoever looks or as the way back, shares what there is.
#[test]
fn a_copy_shares_its_steps_and_is_not_changed_by_what_follows() {
    let mut ledger = Ledger::of("start; intend implement-1; began; finish completed; intend review-1");
    let copy = ledger.state.clone();
    let first = |state: &PipelineState| state.steps().next().expect("a step").clone();
    assert!(std::sync::Arc::ptr_eq(&first(&copy), &first(&ledger.state)));
    ledger.push("began").expect("it follows");
    assert_eq!((copy.counts.commands, ledger.state.counts.commands), (1, 2));
    assert!(copy.current_step().expect("a step").open_attempt().is_none());
}
