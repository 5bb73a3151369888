//! What a changed configuration means for a run that is resumed.

use super::*;
use crate::event::InputValue;
use crate::pipeline::tests::script::{CONFIG, Ledger};

const FRESH: &str = "start; intend implement-1; began;";
const REVIEWING: &str = "start; intend implement-1; began; finish completed; intend review-1;";

fn config() -> ProjectConfig {
    serde_json::from_str(CONFIG).expect("a configuration")
}

fn answer(script: &str, wish: ResumeWish, change: impl FnOnce(&mut ProjectConfig)) -> ResumeAnswer {
    let mut now = config();
    change(&mut now);
    may_resume(&Ledger::of(script).state, &now, wish)
}

fn goes_on(changes: &[ConfigChange]) -> ResumeAnswer {
    ResumeAnswer::GoesOn { reopen: false, changes: changes.to_vec() }
}

#[test]
fn a_run_goes_on_by_where_it_stands() {
    let forced = ResumeWish { force: true, ..ResumeWish::default() };
    let failed = "start; intend implement-1; began; finish failed; fail";
    let aborted = &format!("{REVIEWING} abort");
    let plain = ResumeWish::default();
    let reopened = ResumeAnswer::GoesOn { reopen: true, changes: Vec::new() };
    let done =
        &format!("{REVIEWING} began; finish trivial; intend document-1; began; finish completed; complete");
    for (script, wish, expected) in [
        ("", plain, ResumeAnswer::Refused(Refusal::LedgerMissing)),
        (FRESH, plain, goes_on(&[])),
        (REVIEWING, forced, goes_on(&[])),
        (failed, plain, ResumeAnswer::Refused(Refusal::RunFailed)),
        (failed, forced, reopened.clone()),
        (aborted, plain, ResumeAnswer::Refused(Refusal::RunAborted)),
        (aborted, forced, reopened),
        (done, plain, ResumeAnswer::NothingToDo),
        (done, forced, ResumeAnswer::NothingToDo),
    ] {
        assert_eq!(answer(script, wish, |_| {}), expected, "{script} {wish:?}");
    }
}

#[test]
fn what_finished_steps_hang_on_is_accepted_or_refused() {
    type Change = fn(&mut ProjectConfig);
    let agent =
        |now: &mut ProjectConfig| now.agents.get_mut("builder").expect("an agent").model = Some("m".into());
    let cases: [(Change, ConfigChange); 5] = [
        (|now| now.tasks[0].goal = "Something else".into(), ConfigChange::Goal),
        (
            |now| drop(now.tasks[0].inputs.insert("a".into(), InputValue::Integer(1))),
            ConfigChange::Input("a".into()),
        ),
        (agent, ConfigChange::Model("builder".into())),
        (
            |now| now.pipelines.get_mut("default").expect("a pipeline").stages[0].prompt = Some("x".into()),
            ConfigChange::Stages,
        ),
        (|now| now.pipelines.clear(), ConfigChange::Stages),
    ];
    let accepted = ResumeWish { accept_config: true, ..ResumeWish::default() };
    for (change, named) in cases {
        let refused = ResumeAnswer::Refused(Refusal::ConfigChanged(vec![named.clone()]));
        assert_eq!(answer(REVIEWING, ResumeWish::default(), change), refused);
        assert_eq!(answer(REVIEWING, accepted, change), goes_on(std::slice::from_ref(&named)));
        // Nothing is finished that could hang on it.
        assert_eq!(answer(FRESH, ResumeWish::default(), change), goes_on(&[named]));
    }
    let environment = |now: &mut ProjectConfig| {
        now.agents.get_mut("reviewer").expect("an agent").env = vec!["KEY".into()];
    };
    let named = [ConfigChange::Environment("reviewer".into())];
    assert_eq!(answer(REVIEWING, ResumeWish::default(), environment), goes_on(&named));
    let unused = |now: &mut ProjectConfig| {
        now.agents.insert("other".into(), AgentConfig::default());
    };
    assert_eq!(answer(REVIEWING, ResumeWish::default(), unused), goes_on(&[]));
}

#[test]
fn without_its_task_or_its_agents_no_run_goes_on() {
    let everything = ResumeWish { force: true, accept_config: true };
    let refused = |change: fn(&mut ProjectConfig)| match answer(FRESH, everything, change) {
        ResumeAnswer::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(|now| now.tasks.clear()), Refusal::TaskMissing { task: "T-1".into() });
    let builder = Refusal::AgentChanged { agent: "builder".into() };
    assert_eq!(refused(|now| drop(now.agents.remove("builder"))), builder);
    assert_eq!(
        refused(|now| now.agents.get_mut("builder").expect("an agent").agent = Some("codex".into())),
        builder
    );
    assert_eq!(
        refused(|now| now.agents.get_mut("builder").expect("an agent").command = Some(vec!["x".into()])),
        builder
    );
}

#[test]
fn every_refusal_has_a_word_and_leaves_what_to_do_to_its_hint() {
    let refusals = [
        Refusal::RunUnknown,
        Refusal::LedgerMissing,
        Refusal::RunLocked { by: "process 7".into() },
        Refusal::RunAborted,
        Refusal::RunFailed,
        Refusal::TaskMissing { task: "T-1".into() },
        Refusal::AgentChanged { agent: "builder".into() },
        Refusal::ManifestMissing { snapshot: "snap-1".into() },
        Refusal::ConfigChanged(vec![ConfigChange::Goal, ConfigChange::Input("a".into())]),
    ];
    let codes: BTreeSet<&str> = refusals.iter().map(Refusal::code).collect();
    assert_eq!(codes.len(), refusals.len());
    for said in [&refusals[3], &refusals[4], &refusals[8]].map(Refusal::to_string) {
        assert!(!said.contains("force") && !said.contains("accept"), "{said}");
    }
    let changed = refusals.last().expect("one").to_string();
    assert!(changed.ends_with("the goal of the task, inputs.a of the task"), "{changed}");
}
