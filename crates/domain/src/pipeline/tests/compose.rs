//! Which records make up each append.

use super::script::{Ledger, id, intention, pipeline_id, started, tree};
use crate::event::{Event, StepFinished};
use crate::id::{RunId, SessionId, StepId};
use crate::line::Draft;
use crate::pipeline::compose::{self, Intention};
use crate::pipeline::key::KeyError;
use crate::pipeline::{Following, PipelineState, RunStatus};

fn kinds(records: &[Draft]) -> Vec<&str> {
    records.iter().map(|draft| draft.event.name()).collect()
}

/// Returns what a step begins with that follows in a ledger, and is not asked where nothing does.
fn from(n: u8) -> impl FnOnce(&PipelineState, &StepId) -> Result<Intention, KeyError> {
    move |_, id| Ok(intention(id, tree(n)))
}

fn nothing(_: &PipelineState, step: &StepId) -> Result<Intention, KeyError> {
    panic!("{step} does not follow")
}

fn finished(ledger: &Ledger, text: &str) -> StepFinished<'static> {
    match ledger.event(text) {
        Event::StepFinished(finished) => finished,
        other => panic!("{other:?}"),
    }
}

/// Each append is taken in whole, so the ledger never has a result without what follows it.
fn check(script: &str, finish: &str, kinds_after: &[&str], stage: Option<(&str, u8)>) {
    let mut ledger = Ledger::of(script);
    let result = finished(&ledger, finish);
    let records = match stage {
        Some((_, tree)) => compose::finish(&ledger.state, result, from(tree)),
        None => compose::finish(&ledger.state, result, nothing),
    };
    let records = records.expect("it may follow");
    assert_eq!(kinds(&records), kinds_after, "{script} {finish}");
    for record in &records {
        ledger.take(&record.event).unwrap_or_else(|why| panic!("{script} {finish}: {why}"));
    }
    if let Some((step, _)) = stage {
        assert_eq!(ledger.step().id, id(step), "{script} {finish}");
    }
}

#[test]
fn a_start_is_recorded_with_its_first_step() {
    let first = || intention(&id("implement-1"), tree(1));
    let records = compose::start(pipeline_id(), started(None), first()).expect("it may begin");
    assert_eq!(kinds(&records), ["pipeline.started", "step.intended"]);
    let Event::StepIntended(intended) = &records[1].event else { panic!("{:?}", records[1]) };
    assert_eq!(
        (&intended.step_id, &*intended.action, intended.from),
        (&id("implement-1"), "implement", tree(1))
    );
    let mut odd = started(None);
    odd.pipeline = "other".into();
    assert!(compose::start(pipeline_id(), odd, first()).is_err(), "a run without stages is not started");
}

#[test]
fn a_result_is_recorded_with_what_follows_it() {
    let next = &["step.finished", "step.intended"];
    let failed = &["step.finished", "pipeline.failed"];
    let reviewed = "start; intend implement-1; began; finish completed; intend review-1; began;";
    check("start; intend implement-1; began", "finish completed", next, Some(("review-1", 2)));
    check("start; intend implement-1", "cached completed", next, Some(("review-1", 2)));
    check("start; intend implement-1; began", "finish failed", failed, None);
    check(reviewed, "finish approved", next, Some(("verify-1", 2)));
    check(reviewed, "finish changes_requested", next, Some(("implement-2", 2)));
    check(reviewed, "finish hopeless", failed, None);
    let last = &format!("{reviewed} finish trivial; intend document-1; began");
    check(last, "finish completed", &["step.finished", "pipeline.completed"], None);
    // What is no outcome is refused before anything is written.
    let ledger = Ledger::of(reviewed);
    assert!(compose::finish(&ledger.state, finished(&ledger, "finish completed"), nothing).is_err());
}

/// A ledger that ends behind a result alone is no run that is complete.
#[test]
fn what_follows_a_result_that_stands_alone_is_made_good() {
    for (script, expected) in [
        ("start", Some("step.intended")),
        ("start; intend implement-1; began; finish completed", Some("step.intended")),
        ("start; intend implement-1; began; finish failed", Some("pipeline.failed")),
        ("start; intend implement-1; began", None),
    ] {
        let ledger = Ledger::of(script);
        let from = ledger.state.expected_tree().expect("it was started");
        let records =
            compose::follow(&ledger.state, |_, step| Ok(intention(step, from))).expect("it may follow");
        assert_eq!(kinds(&records), expected.into_iter().collect::<Vec<_>>(), "{script}");
    }
}

#[test]
fn an_attempt_and_a_reminder_name_their_session() {
    let (session, run) = (SessionId::from_ulid(1), RunId::from_ulid(5));
    let mut ledger = Ledger::of("start; intend implement-1; began; interrupt agent_gone");
    assert_eq!(compose::remind(ledger.step(), run), None, "nobody is there");
    let began = compose::begin(ledger.step(), session, run);
    ledger.take(&began.event).expect("the second attempt");
    let reminded = compose::remind(ledger.step(), RunId::from_ulid(6)).expect("it goes on");
    ledger.take(&reminded.event).expect("once");
    let attempt = ledger.step().open_attempt().expect("it goes on");
    assert_eq!((attempt.session_id, attempt.run_id, attempt.reminded), (session, RunId::from_ulid(6), true));
    assert_eq!(ledger.step().attempts, 2);
}

#[test]
fn files_taken_as_they_are_mean_a_step_anew_in_one_append() {
    let ledger = Ledger::of("start; intend implement-1");
    let drift = |decision: &str| match ledger.event(&format!("drift {decision} found=9")) {
        Event::PipelineDrift(drift) => drift,
        other => panic!("{other:?}"),
    };
    let anew = || Some(intention(&id("implement-1"), tree(9)));
    let accepted = compose::decide_drift(drift("accept"), anew());
    assert_eq!(kinds(&accepted), ["pipeline.drift", "step.intended"]);
    let mut after = ledger.clone();
    accepted.iter().for_each(|record| after.take(&record.event).expect("it follows"));
    assert_eq!((after.step().from, after.step().drift), (tree(9), None));
    assert_eq!(kinds(&compose::decide_drift(drift("accept"), None)), ["pipeline.drift"]);
    assert_eq!(kinds(&compose::decide_drift(drift("restore"), anew())), ["pipeline.drift"]);
}

#[test]
fn a_run_that_goes_on_has_its_next_step_in_the_same_append() {
    let failed = Ledger::of("start; intend implement-1; began; finish failed; fail");
    let records = compose::reopen(&failed.state, None, "user:ada", from(2)).expect("it may go on");
    assert_eq!(kinds(&records), ["pipeline.reopened", "step.intended"]);
    let cut = Ledger::of("start; intend implement-1; began; abort");
    let records = compose::reopen(&cut.state, Some("forced"), "user:ada", nothing).expect("it may go on");
    assert_eq!(kinds(&records), ["pipeline.reopened"]);
    let running = Ledger::of("start; intend implement-1");
    assert!(compose::reopen(&running.state, None, "user:ada", nothing).is_err());
    let aborted = compose::abort(Some("not wanted"), "user:ada");
    assert_eq!(aborted.event.name(), "pipeline.aborted");
}

/// The file that the next step needs is not in what this one left.
#[test]
fn a_step_that_cannot_be_meant_fails_the_run_and_comes_next_when_that_goes_on() {
    let mut ledger = Ledger::of("start; intend implement-1; began");
    let missing = |_: &PipelineState, _: &StepId| {
        Err(KeyError::FileMissing { input: "spec".into(), path: "a.md".into() })
    };
    let result = finished(&ledger, "finish completed");
    let records = compose::finish(&ledger.state, result, missing).expect("it is recorded");
    assert_eq!(kinds(&records), ["step.finished", "pipeline.failed"]);
    records.iter().for_each(|record| ledger.take(&record.event).expect("it follows"));
    let why = ledger.state.ended.as_ref().and_then(|ended| ended.reason.clone());
    assert_eq!(why.as_deref(), Some("inputs.spec: there is no file a.md in the workspace"));
    assert_eq!(ledger.state.status, RunStatus::Failed);
    ledger.push("reopen").expect("it goes on");
    assert_eq!(ledger.state.following(), Following::Step(id("review-1")));
}
