//! How agents and holders end, and that nobody is left.

use std::time::Duration;

use rekindle_holder::client::{Started, harvest};
use rekindle_holder::dir::{ExitReason, HolderDir, Limits};
use rekindle_holder::identity::{Identity, Presence};
use rekindle_holder::journal::Item;
use rekindle_holder::tree::signal_exactly;
use rekindle_holder::wire::Event;
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, limits, wait_for, wait_for_event, wait_until_gone};

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("our own child");
}

#[test]
fn an_agent_that_ends_leaves_a_note_and_no_holder() {
    let lab = Lab::new();
    let (mut held, mut control) = lab.shell("read go; echo done; exit 7", limits());
    control.input(1, "prompt", b"go\n").expect("accepted");
    let event = wait_for_event(&mut control, |event| matches!(event, Event::Exited { .. }));
    assert_eq!(event, Event::Exited { code: Some(7), signal: None });
    let exit = held.ended();
    assert_eq!(
        (exit.code, exit.signal, exit.reason, exit.drained),
        (Some(7), None, ExitReason::AgentExit, true)
    );
    assert_eq!(held.lines(), ["done"]);
    assert_eq!(exit.last_seq, harvest(&held.dir).expect("a dead holder").last_seq);
}

// I4: the supervisor is dead while the agent finishes and ends.
#[test]
fn an_agent_that_ends_while_nobody_is_attached_is_found_ended() {
    let lab = Lab::new();
    let (mut held, mut control) = lab.shell("read go; echo result; exit 3", limits());
    control.input(1, "prompt", b"go\n").expect("accepted");
    drop(control);
    held.wait();
    let harvested = harvest(&held.dir).expect("a dead holder");
    assert_eq!(harvested.exit.map(|exit| exit.code), Some(Some(3)));
    assert_eq!((harvested.started, harvested.tree_gone), (Started::Yes, true));
    assert_eq!(held.lines(), ["result"]);
}

// I4, I9
#[test]
fn a_holder_killed_in_mid_turn_leaves_everything_written_and_its_tree_is_ended() {
    let lab = Lab::new();
    let script = "(setsid sleep 300 >/dev/null 2>&1 </dev/null &) ; sleep 300 & \
                  i=0; while :; do i=$((i+1)); echo \"{\\\"n\\\":$i}\"; done";
    let (mut held, control) = lab.shell(script, limits());
    held.wait_for_line("{\"n\":50}");
    let tree = held.tree();
    assert!(tree.len() >= 3, "the agent, its child and the one that left: {}", tree.len());
    drop(control);
    held.kill();
    let harvested = harvest(&held.dir).expect("a dead holder");
    assert!(harvested.exit.is_none(), "it did not live to write one");
    assert!(harvested.tree_gone, "{:?}", harvested.left);
    for process in tree {
        assert_eq!(process.presence().expect("readable"), Presence::Gone);
    }
    let lines = held.lines();
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("{{\"n\":{}}}", index + 1), "no gap, no repeat");
    }
}

// I5
#[test]
fn a_holder_killed_before_an_input_was_delivered_leaves_it_uncertain() {
    let lab = Lab::new();
    let (mut held, mut control) = lab.shell("exec sleep 300", limits());
    let long: Vec<u8> = vec![b'x'; 200_000].into_iter().chain([b'\n']).collect();
    control.input(1, "prompt", &long).expect("accepted");
    held.kill();
    let mut follower = rekindle_holder::client::Follower::new(&held.dir, 1);
    let (mut accepted, mut done) = (false, false);
    while let Some(item) = follower.next_item().expect("a journal") {
        accepted |= matches!(&item, Item::Input { head, .. } if head.input == 1);
        done |= matches!(&item, Item::Done { .. });
    }
    assert!(accepted && !done, "begun and not ended: nobody may send it again by himself");
    assert!(harvest(&held.dir).expect("a dead holder").tree_gone);
}

#[test]
fn an_agent_killed_by_a_signal_is_told_so_and_a_grandchild_that_holds_the_pipe_does_not_keep_us() {
    let lab = Lab::new();
    let script = "sleep 300 & echo \"{\\\"child\\\":$!}\"; echo \"{\\\"me\\\":$$}\"; read forever";
    let (mut held, _control) = lab.shell(script, limits());
    wait_for("both lines", || (held.lines().len() == 2).then_some(()));
    let number = |line: &str| -> i32 {
        line.chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a pid")
    };
    let lines = held.lines();
    let child = Identity::of(number(&lines[0])).expect("a child");
    signal(number(&lines[1]), Signal::KILL);
    let exit = held.ended();
    assert_eq!((exit.signal, exit.drained), (Some(9), false));
    assert!(exit.left.is_empty(), "{:?}", exit.left);
    assert_eq!(child.presence().expect("readable"), Presence::Gone);
}

// I13
#[test]
fn an_agent_that_ignores_everything_and_its_children_elsewhere_are_ended() {
    let lab = Lab::new();
    let script = "trap '' TERM INT HUP; (trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' \
                  >/dev/null 2>&1 </dev/null &); echo ready; while :; do sleep 1; done";
    let (mut held, mut control) = lab.shell(script, limits());
    held.wait_for_line("ready");
    wait_for("all of the tree", || (held.tree().len() >= 3).then_some(()));
    let tree = held.tree();
    control.stop("the user said so", "cli", Duration::from_millis(200)).expect("it begins");
    let exit = held.ended();
    assert_eq!(exit.reason, ExitReason::StopRequested);
    assert_eq!((exit.actor.as_deref(), exit.detail.as_deref()), (Some("cli"), Some("the user said so")));
    assert!(exit.left.is_empty());
    tree.iter().for_each(wait_until_gone);
}

#[test]
fn hangup_and_interrupt_do_nothing_and_terminate_is_an_orderly_stop() {
    let lab = Lab::new();
    let (mut held, mut control) =
        lab.running(&["sh", "-c", "while read l; do echo $l; done; echo goodbye"], limits());
    for ignored in [Signal::HUP, Signal::INT, Signal::PIPE] {
        signal(held.pid(), ignored);
    }
    control.input(1, "prompt", b"still here\n").expect("accepted");
    held.wait_for_line("still here");
    signal(held.pid(), Signal::TERM);
    let exit = held.ended();
    assert_eq!((exit.reason, exit.code), (ExitReason::HolderSigterm, Some(0)));
    assert_eq!(held.lines(), ["still here", "goodbye"], "its input was closed, and it had time to save");
}

#[test]
fn without_a_start_a_holder_ends_by_itself_and_never_had_an_agent() {
    let lab = Lab::new();
    let bounds = Limits { start_ms: 100, ..limits() };
    let mut held = lab.holder(&["sh", "-c", "touch started"], bounds);
    let exit = held.ended();
    assert_eq!(exit.reason, ExitReason::NeverStarted);
    assert_eq!(harvest(&held.dir).expect("a dead holder").started, Started::Never);
    assert!(!lab.path("started").exists());
}

#[test]
fn a_command_that_does_not_exist_is_an_answer_and_an_end() {
    let lab = Lab::new();
    let mut held = lab.holder(&["/nonexistent/agent"], limits());
    let mut control = held.control(1);
    let error = control.start(crate::lab::env()).expect_err("there is no such command");
    assert!(error.to_string().contains("No such file"), "{error}");
    assert_eq!(held.ended().reason, ExitReason::StartFailed);
}

#[test]
fn an_idle_agent_is_let_go_and_a_busy_one_is_not() {
    use rekindle_holder::client::TurnHint;
    let lab = Lab::new();
    let (mut held, mut control) = lab.running(&["cat"], limits());
    control.hint(TurnHint::Idle, None).expect("sent");
    control.input(1, "prompt", b"work\n").expect("accepted");
    held.wait_for_line("work");
    control.retire().expect_err("something has passed since it was idle");
    control.hint(TurnHint::Idle, None).expect("sent");
    control.retire().expect("nothing has");
    assert_eq!(held.ended().reason, ExitReason::Retired);
}

#[test]
fn an_unattended_agent_is_ended_after_its_time() {
    let lab = Lab::new();
    let bounds = Limits { detached_ms: 200, ..limits() };
    let (mut held, control) = lab.running(&["cat"], bounds);
    drop(control);
    assert_eq!(held.ended().reason, ExitReason::Unattended);
}

// I9
#[test]
fn nobody_innocent_is_signalled_for_a_recycled_pid_or_in_a_copied_home() {
    let lab = Lab::new();
    let (mut held, control) = lab.shell("exec sleep 300", limits());
    drop(control);
    let mut innocent = std::process::Command::new("sleep").arg("300").spawn().expect("a process");
    let them = Identity::of(innocent.id() as i32).expect("it is there");
    // The pid is the same, the process is another.
    let recycled = Identity { start_ticks: them.start_ticks - 1, ..them.clone() };
    assert!(!signal_exactly(&recycled, Signal::KILL).expect("looked"), "not that process");
    // A copy of the directory names living processes that are not its own.
    let copy = HolderDir::new(lab.path("copy"));
    copy_dir(held.dir.path(), copy.path());
    let agent = held.tree();
    let harvested = harvest(&copy).expect("a copy is nobody's");
    assert!(harvested.copied && !harvested.tree_gone, "{harvested:?}");
    for process in agent.iter().chain([&them]) {
        assert_eq!(process.presence().expect("readable"), Presence::Alive);
    }
    innocent.kill().expect("our child");
    innocent.wait().expect("our child");
    held.kill();
}

pub(crate) fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
