//! Agents of steps that are cut: what becomes of their steps, and how often.

use rekindle_domain::event::{OnCut, OnDrift, Options, ResumePolicy};
use rekindle_testkit::sim::{Fault, FaultKind};

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run, new_run_on_cut};
use crate::pipelines::{NewRun, ResumeRun};

const BEGUN: &str = "started; intend implement-1; begin implement-1";

fn started(lives: &[&'static str], on_cut: OnCut) -> Home {
    let mut home = Home::new(lives);
    home.start(new_run_on_cut(on_cut)).expect("started");
    home.settle();
    home
}

#[test]
fn an_agent_that_brings_its_session_back_goes_on_by_itself() {
    let mut home = Home::with_run(&["writes:code:1 text die", "writes:code:2 text end", APPROVES, PASSES]);
    home.wait_long();
    let cut = "begin implement-1; cut implement-1 agent_gone; begin implement-1 #2";
    assert_eq!(home.news(), ROUND.replace("begin implement-1", cut));
    assert_eq!(home.trees.read("code").as_deref(), Some("2"));
    assert!(home.trees.restored.lock().expect("no panic").is_empty(), "nothing was restored");
}

#[test]
fn an_agent_that_cannot_begins_again_with_the_files_of_before() {
    let mut home =
        Home::with_run(&["can=nothing; writes:code:1 writes:half:1 die", "text end", APPROVES, PASSES]);
    home.wait_long();
    let cut = "begin implement-1; cut implement-1 agent_gone; begin implement-1 #2";
    assert_eq!(home.news(), ROUND.replace("begin implement-1", cut));
    assert_eq!((home.trees.read("code").as_deref(), home.trees.read("half")), (Some("0"), None));
}

/// Lives of agents of which the second comes back without the session of the first.
const FORGETS: [&str; 5] = [
    "writes:code:1 writes:half:1 text die",
    "load=no; writes:code:2 text hang",
    "writes:code:3 text end",
    APPROVES,
    PASSES,
];

#[test]
fn an_agent_that_comes_back_without_its_session_is_ended_and_its_step_restored() {
    let mut home = Home::with_run(&FORGETS);
    home.wait_long();
    let cuts = "begin implement-1; cut implement-1 agent_gone; begin implement-1 #2; cut implement-1 not_continued; begin implement-1 #3";
    assert_eq!(home.news(), ROUND.replace("begin implement-1", cuts));
    assert_eq!((home.trees.read("code").as_deref(), home.trees.read("half")), (Some("3"), None));
    assert_eq!(home.trees.restored.lock().expect("no panic").len(), 1);
    assert_eq!(home.scripted.living(), 0);
    // Where somebody said that it is to go on, it goes on with what it was told.
    let mut home = started(&FORGETS, OnCut::Continue);
    home.wait_long();
    assert!(home.news().ends_with("begin implement-1 #2"), "{}", home.course());
    assert_eq!(home.trees.read("half").as_deref(), Some("1"));
}

// I4: whoever dies on the way leaves it to the next, who finds the same.
#[test]
fn a_continuation_is_given_up_whoever_dies_over_it() {
    let play = |dies_at: Option<u64>| {
        let mut home = Home::with_run(&FORGETS);
        let before = home.disk.disk.ops();
        if let Some(dies_at) = dies_at {
            home.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, dies_at));
        }
        home.wait_long();
        let writes = home.disk.disk.ops() - before;
        if dies_at.is_some() {
            home.daemon_ends();
            home.disk.disk.clear_faults();
            home.open();
            home.recover().wait_long();
        }
        let what = format!("write {dies_at:?}: {}, {}", home.course(), home.held());
        assert!(home.course().ends_with("completed"), "{what}");
        assert_eq!(home.course().matches("not_continued").count(), 1, "{what}");
        assert_eq!(
            (home.trees.read("code").as_deref(), home.trees.read("half")),
            (Some("3"), None),
            "{what}"
        );
        writes
    };
    let writes = play(None);
    assert!(writes > 30, "{writes}");
    for dies_at in 0..writes {
        play(Some(dies_at));
    }
}

// Nobody saw what the first one did last: what another one was told on top of that proves nothing.
#[test]
fn files_that_may_be_anybodys_are_not_taken_back_because_a_continuation_was_seen_to_end() {
    let mut home =
        Home::with_run(&["writes:code:1 text hang", "load=no; text hang", "text end", APPROVES, PASSES]);
    home.daemon_ends();
    home.scripted.lose();
    home.open();
    home.edit("spec", Some("mine"));
    home.recover().wait_long();
    assert!(home.course().ends_with("cut implement-1 not_continued; drift stop"), "{}", home.course());
    assert_eq!(home.trees.read("spec").as_deref(), Some("mine"));
    home.resume_with(OnDrift::Restore).expect("it goes on");
    home.wait_long();
    assert!(home.course().ends_with("completed"), "{}", home.course());
    assert_eq!(home.trees.read("spec").as_deref(), Some("as it is written"));
}

#[test]
fn a_run_that_is_to_ask_goes_on_under_another_daemon_when_somebody_says_so() {
    let asks = |lives: &[&'static str]| {
        let mut home = Home::new(lives);
        let options = Options { resume: ResumePolicy::Ask, ..new_run(CONFIG).options };
        home.start(NewRun { options, ..new_run(CONFIG) }).expect("started");
        home.settle();
        home
    };
    let mut home = asks(&["writes:code:1 text die", "writes:code:2 text end", APPROVES, PASSES]);
    home.wait_long();
    assert!(home.news().ends_with("completed"), "a cut under its own daemon is another matter");
    let mut home = asks(&["hang", "text end", APPROVES, PASSES]);
    home.daemon_ends();
    home.scripted.lose();
    home.open();
    home.recover().wait_long();
    assert_eq!(home.news(), format!("{BEGUN}; cut implement-1 agent_gone"));
    assert!(home.held().contains("set to ask before it continues"), "{}", home.held());
    home.restart().wait_long();
    assert_eq!(home.news(), "", "nor under the next one");
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.news().ends_with("completed"), "{}", home.course());
    // Whose agent is met alive goes on as if nothing had happened.
    let mut home = asks(&["hang end", APPROVES, PASSES]);
    home.restart();
    home.scripted.go_on();
    home.wait_long();
    assert_eq!(home.news(), ROUND);
}

#[test]
fn what_becomes_of_a_cut_is_what_the_start_said() {
    let mut home = started(&["writes:code:1 die", "text end", APPROVES, PASSES], OnCut::Restore);
    home.wait_long();
    assert!(home.news().ends_with("completed"), "{}", home.course());
    assert_eq!(home.trees.read("code").as_deref(), Some("0"));
    let mut home =
        started(&["can=nothing; writes:code:1 die", "text end", APPROVES, PASSES], OnCut::Continue);
    home.wait_long();
    assert!(home.news().ends_with("completed"), "{}", home.course());
    assert_eq!(home.trees.read("code").as_deref(), Some("1"));
    let mut home = started(&["writes:code:1 die", "text end", APPROVES, PASSES], OnCut::Ask);
    home.wait_long();
    assert_eq!(home.news(), format!("{BEGUN}; cut implement-1 agent_gone"));
    assert!(home.held().contains("set to ask"), "{}", home.held());
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.news().ends_with("completed"), "{}", home.course());
}

#[test]
fn a_command_that_is_cut_begins_again() {
    let mut home = Home::with_run(&[WRITES, APPROVES, "text die", "text end"]);
    home.wait_long();
    assert!(home.news().ends_with(
        "begin verify-1; cut verify-1 agent_gone; begin verify-1 #2; finish verify-1 completed; completed"
    ));
}

#[test]
fn what_is_cut_three_times_is_a_persons_to_look_at() {
    let mut home = Home::with_run(&["die", "die", "die", "text end", APPROVES, PASSES]);
    home.wait_long();
    let cuts = "cut implement-1 agent_gone; begin implement-1 #2; cut implement-1 agent_gone; begin implement-1 #3; cut implement-1 agent_gone";
    assert_eq!(home.news(), format!("{BEGUN}; {cuts}"));
    assert!(home.held().contains("too often"), "{}", home.held());
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.news().starts_with("begin implement-1 #4") && home.course().ends_with("completed"));
}

// I13: a cancel is never undone by itself.
#[test]
fn a_step_that_somebody_cancelled_waits_for_a_word() {
    let mut home = Home::with_run(&["writes:code:1 hang", "text end", APPROVES, PASSES]);
    home.cancel_session().wait_long();
    assert_eq!(home.news(), format!("{BEGUN}; cut implement-1 cancelled"));
    home.restart().wait_long();
    assert_eq!(home.news(), "");
    assert!(home.held().contains("cancelled"), "{}", home.held());
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.course().ends_with("completed"), "{}", home.course());
}

#[test]
fn an_agent_that_cannot_be_launched_is_tried_again() {
    let mut home = Home::with_run(&["begin=13", WRITES, APPROVES, PASSES]);
    home.wait_long();
    assert!(
        home.news().starts_with(&format!("{BEGUN}; cut implement-1 not_launched; begin implement-1 #2")),
        "{}",
        home.course()
    );
    assert!(home.course().ends_with("completed"), "{}", home.course());
}

#[test]
fn a_check_that_cannot_be_started_is_tried_once_and_again_when_somebody_says_so() {
    let mut home = Home::with_run(&[WRITES, APPROVES, "begin=2", PASSES]);
    home.wait_long();
    assert!(home.news().ends_with("begin verify-1; cut verify-1 not_launched"), "{}", home.course());
    assert!(home.held().contains("must be installed and on PATH"), "{}", home.held());
    home.restart().wait_long();
    assert_eq!(home.news(), "", "another daemon does not try it either");
    home.resume_with(OnDrift::Stop).expect("it goes on");
    home.wait_long();
    assert!(home.news().starts_with("begin verify-1 #2; finish verify-1 completed"), "{}", home.course());
    assert!(home.course().ends_with("completed"), "{}", home.course());
}

#[test]
fn a_holder_of_which_nothing_is_told_is_waited_for() {
    let mut home = Home::with_run(&["text mute"]);
    home.daemon_ends();
    home.open();
    home.recover().wait_long();
    assert_eq!(home.news(), BEGUN);
}

#[test]
fn variables_that_nobody_has_are_asked_for_before_anything_begins() {
    let config = CONFIG.replace(r#""env":[]"#, r#""env":["SECRET"]"#);
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    home.start(new_run(&config)).expect("started");
    home.settle();
    assert_eq!(home.news(), "started; intend implement-1");
    assert!(home.held().contains("SECRET"), "{}", home.held());
    let refused = home.resume_with(OnDrift::Stop).expect_err("nobody has it");
    assert_eq!(refused.code.as_str(), "env_missing");
    let env = [("SECRET".to_owned(), "1".to_owned())].into();
    home.resume(ResumeRun { env, ..ResumeRun::default() }).expect("it goes on");
    assert!(home.course().ends_with("completed"), "{}", home.course());
}

#[test]
fn why_a_run_rests_is_told_also_when_its_worker_has_left() {
    let mut home = started(&["die"], OnCut::Ask);
    home.wait_long();
    let view = home.pipelines().show(home.run).expect("shown");
    let pending = view.pending.expect("a step");
    assert_eq!(pending.why.as_str(), "asks");
    assert!(pending.detail.is_some_and(|detail| detail.contains("set to ask")));
}

#[test]
fn an_agent_that_waits_for_variables_gets_them_by_a_resume() {
    let config = CONFIG.replace(r#""env":[]"#, r#""env":["SECRET"]"#);
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    let env: crate::drive::environment::Env = [("SECRET".to_owned(), "1".to_owned())].into();
    let id = home.pipelines().create(NewRun { env: env.clone(), ..new_run(&config) }, None, "user:ada");
    home.run = id.expect("started");
    // The daemon dies when the attempt is recorded, and before an agent was launched for it.
    home.run_only().restart();
    assert_eq!(home.news(), BEGUN);
    assert!(home.held().contains("SECRET"), "{}", home.held());
    let refused = home.resume(ResumeRun::default()).expect_err("it lacks them");
    assert_eq!(refused.code.as_str(), "run_locked");
    home.resume(ResumeRun { env, ..ResumeRun::default() }).expect("it goes on");
    home.wait_long();
    assert!(home.course().contains("finish implement-1 completed"), "{}", home.course());
}
