//! Daemons that die: at every record of a run the next one goes on, and no finished step is done again.

use rekindle_domain::pipeline::RunStatus;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind};

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run};

/// Lives of the agents of two rounds of three stages: the check of the first fails, so that the work is done again.
const LIVES: &[&str] = &[
    WRITES,
    APPROVES,
    "text exit",
    "writes:code:2 text end",
    APPROVES,
    PASSES,
    // Nobody needs these: an agent lives on when a daemon dies.
    "text end",
];

const COURSE: &str = "started; intend implement-1; begin implement-1; finish implement-1 completed; intend review-1; begin review-1; \
     finish review-1 approved; intend verify-1; begin verify-1; finish verify-1 failed; intend implement-2; begin implement-2; \
     finish implement-2 completed; intend review-2; begin review-2; finish review-2 approved; intend verify-2; begin verify-2; \
     finish verify-2 completed; completed";

/// How many times a home is written to until a run in it is complete.
fn writes() -> (u64, u64) {
    let mut home = Home::new(LIVES);
    let before = home.disk.disk.ops();
    home.start(new_run(CONFIG)).expect("started");
    let begun = home.disk.disk.ops();
    home.settle().wait_long();
    assert_eq!(home.course(), COURSE);
    assert!(begun > before);
    (begun - before, home.disk.disk.ops() - begun)
}

/// What is left of the disk of a daemon that dies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    /// Everything that it wrote.
    Written,
    /// What it synced, and some of the rest: the power was cut.
    Synced,
}

/// I4, I11: a daemon that dies takes no step with it, none that is finished is done again, and every agent is met once.
#[test]
fn a_daemon_that_dies_at_any_write_is_followed_by_one_that_goes_on() {
    let (start, all) = writes();
    assert!(all > 40 && start > 0, "{all} writes");
    let mut rng = Rng::new(7);
    let power_every = if std::env::var_os("REKINDLE_TEST_LONG").is_some() { 1 } else { 5 };
    for dies_at in 0..all {
        check_death(dies_at, Left::Written, &mut rng);
        if dies_at % power_every == 0 {
            check_death(dies_at, Left::Synced, &mut rng);
        }
    }
}

fn check_death(dies_at: u64, left: Left, rng: &mut Rng) {
    let mut home = Home::new(LIVES);
    home.start(new_run(CONFIG)).expect("started");
    home.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, dies_at));
    home.settle();
    let came_to = home.state().position().last_seq;
    home.daemon_ends();
    home.disk.disk.clear_faults();
    if left == Left::Synced {
        home.disk.disk = home.disk.disk.power_cut(rng);
    }
    home.open();
    home.recover().wait_long();
    let course = home.course();
    let what = format!("{left:?}, write {dies_at} ({came_to}): {course}, {}", home.held());
    assert_eq!(home.state().status, RunStatus::Completed, "{what}");
    assert_eq!(course.matches("finish ").count(), 6, "{what}");
    assert_eq!(course.matches("cut ").count(), 0, "a dead daemon interrupts nobody: {what}");
    assert_eq!(home.scripted.living(), 0, "{what}");
    assert_eq!(home.trees.read("code").as_deref(), Some("2"), "{what}");
    assert_eq!(course.matches("begin ").count(), home.scripted.started(), "{what}");
}

// Everything dies in the middle of a step: that one is cut and done again, and no other.
#[test]
fn whatever_dies_with_its_holder_in_the_middle_of_a_step_is_done_again() {
    for at in 0..6 {
        let lives: Vec<&'static str> = [&LIVES[..at], &["hang"], &LIVES[at..]].concat();
        let mut home = Home::new(&lives);
        home.start(new_run(CONFIG)).expect("started");
        home.settle();
        let before = home.records().len();
        assert_eq!(before, 3 + 3 * at, "{}", home.course());
        home.daemon_ends();
        home.scripted.lose();
        home.open();
        home.recover().wait_long();
        let course = home.course();
        assert_eq!(home.state().status, RunStatus::Completed, "step {at}: {course}, {}", home.held());
        assert_eq!(course.matches("finish ").count(), 6, "step {at}: {course}");
        assert_eq!(course.matches("cut ").count(), 1, "step {at}: {course}");
        assert_eq!(course.matches(" #2").count(), 1, "step {at}: {course}");
    }
}

#[test]
fn a_run_whose_daemon_died_in_the_middle_of_its_step_is_adopted() {
    let mut home = Home::with_run(&["writes:code:1 hang", APPROVES, PASSES]);
    home.restart();
    assert_eq!(home.scripted.started(), 1);
    home.scripted.go_on();
    home.settle();
    home.scripted.kill();
    home.wait_long();
    assert!(home.course().contains("cut implement-1 agent_gone"), "{}", home.course());
}

#[test]
fn an_agent_that_ended_while_nobody_was_there_is_harvested() {
    let mut home = Home::with_run(&["writes:code:1 hang end", APPROVES, PASSES]);
    home.daemon_ends();
    home.scripted.go_on();
    home.open();
    home.recover().wait_long();
    assert_eq!(home.course(), ROUND);
    assert_eq!(home.scripted.started(), 3);
}
