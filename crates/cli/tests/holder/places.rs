//! Sockets, directories and executables that go away under a living holder.

use rekindle_holder::client::{LockState, inspect, inspect_all};
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, limits, wait_for};

// I4
#[test]
fn a_holder_whose_socket_was_removed_makes_it_again() {
    let lab = Lab::new();
    let (held, control) = lab.running(&["cat"], limits());
    drop(control);
    std::fs::remove_dir_all(lab.path("run")).expect("the runtime directory is wiped");
    // It looks round by itself every five seconds; this signal is to look now.
    kill_process(Pid::from_raw(held.pid()).expect("a pid"), Signal::USR1).expect("our child");
    let mut control = wait_for("the socket", || held.connect(rekindle_holder::wire::Mode::Control, 2).ok());
    control.input(1, "prompt", b"back\n").expect("accepted");
    held.wait_for_line("back");
}

#[test]
fn a_holder_whose_directory_was_taken_away_ends_in_order() {
    let lab = Lab::new();
    let (mut held, control) = lab.running(&["cat"], limits());
    drop(control);
    let agent = held.tree();
    std::fs::remove_dir_all(held.dir.path()).expect("the directory is removed");
    held.wait();
    agent.iter().for_each(crate::lab::wait_until_gone);
}

#[test]
fn an_executable_that_was_replaced_or_removed_is_no_matter() {
    let lab = Lab::new();
    let (held, control) = lab.running(&["cat"], limits());
    drop(control);
    std::fs::remove_dir_all(lab.path("bin")).expect("the copies are removed");
    let mut control = held.control(2);
    control.input(1, "prompt", b"alive\n").expect("accepted");
    held.wait_for_line("alive");
}

// I9, I10
#[test]
fn the_lock_alone_tells_the_living_from_the_dead_and_one_bad_directory_hides_nobody() {
    let lab = Lab::new();
    let (alive, _control) = lab.running(&["cat"], limits());
    let (mut dead, control) = lab.running(&["cat"], limits());
    drop(control);
    dead.kill();
    std::fs::create_dir_all(lab.path("holders").join("h_rubbish")).expect("a directory");
    std::fs::write(lab.path("holders").join("h_rubbish").join("launch.json"), b"\xff{").expect("rubbish");
    let found = inspect_all(&lab.path("holders")).expect("a directory");
    assert_eq!(found.len(), 3);
    assert!(matches!(inspect(&alive.dir).lock, LockState::Held { .. }));
    assert!(matches!(inspect(&dead.dir).lock, LockState::Free { .. }));
}
