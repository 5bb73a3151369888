//! A connection that is lost says nothing about the agent: only the lock does. Supervisors that are slow, holders that
//! are killed under living supervisors, agents that never stop writing.

use std::time::{Duration, Instant};

use rekindle_holder::client::{LockState, inspect_all};
use rekindle_holder::dir::{ExitReason, Limits};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rekindle_holder::wire::Phase;
use rustix::process::Signal;

use crate::home::Home;
use crate::lab::{Lab, limits, wait_for};

fn living_holder(home: &Home) -> Option<Identity> {
    let found = inspect_all(&home.path("home/holders")).ok()?;
    found.into_iter().find_map(|seen| match seen.lock {
        LockState::Held { note: Some(note), .. } => Some(note.process),
        _ => None,
    })
}

// I4, I9: longer than any step with a holder may take.
#[test]
fn a_supervisor_that_was_stopped_for_long_goes_on_with_the_same_agent() {
    let home = Home::new();
    let supervisor = home.drive(&["--stop", "--prompt", "words 4000 every 1ms"]);
    wait_for("the first words", || (home.told("session/prompt") == 1).then_some(()));
    let process = Identity::of(supervisor.pid()).expect("it lives");
    signal_exactly(&process, Signal::STOP).expect("stopped");
    // Time has to pass here: the holder must have been tempted to hang up.
    std::thread::sleep(Duration::from_millis(3500));
    signal_exactly(&process, Signal::CONT).expect("continued");
    supervisor.succeed();
    assert_eq!((home.count("run.completed"), home.count("run.interrupted")), (1, 0));
    assert_eq!(home.processes(), 1, "no second agent was started");
    let words: Vec<String> = (1..=4000).map(|n| format!("w{n}")).collect();
    assert!(home.said().concat().contains(&words.join(" ")));
}

// I9: a holder that is killed under its supervisor leaves nobody behind.
#[test]
fn a_holder_killed_while_its_supervisor_lives_leaves_no_process_of_the_tree() {
    let home = Home::new();
    let supervisor = home.drive(&["--prompt", "grandchild 60 detach\nbarrier here\nsay never"]);
    home.reach("here");
    let holder = living_holder(&home).expect("a living holder");
    assert!(home.trees().iter().any(|tree| tree.members().expect("readable").len() > 1));
    signal_exactly(&holder, Signal::KILL).expect("killed");
    assert!(!supervisor.finish().status.success(), "the agent is gone");
    for tree in home.trees() {
        assert_eq!(tree.members().expect("readable"), [], "someone is left");
    }
    assert_eq!((home.count("run.interrupted"), home.count("agent.exited")), (1, 1));
}

// An agent that floods keeps neither its greeting nor its end from happening.
#[test]
fn a_flood_does_not_keep_a_supervisor_from_ending_its_agent() {
    let home = Home::new();
    let begin = Instant::now();
    let flood = "while :; do echo '{}'; done";
    let supervisor = home.command(&["--stop", "--seconds", "2", "--prompt", "hi"], &["sh", "-c", flood]);
    assert!(!supervisor.finish().status.success(), "no turn ends like this");
    assert!(begin.elapsed() < Duration::from_secs(30), "it took {:?}", begin.elapsed());
    wait_for("the holder's end", || living_holder(&home).is_none().then_some(()));
}

#[test]
fn a_holder_at_its_bound_ends_when_it_is_told_to() {
    let lab = Lab::new();
    let bounds = Limits { unacked_bytes: 1 << 20, segment_bytes: 1 << 20, ..limits() };
    let (mut held, mut control) = lab.shell("while :; do echo '{\"n\":1}'; done", bounds);
    wait_for("the bound", || (control.status().ok()?.phase == Phase::Blocked).then_some(()));
    let holder = Identity::of(held.pid()).expect("it lives");
    signal_exactly(&holder, Signal::TERM).expect("told");
    assert_eq!(held.ended().reason, ExitReason::HolderSigterm);
}
