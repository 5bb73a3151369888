//! A daemon that is there and says nothing, or cannot be reached: looking goes on without it, and another takes its place.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::{await_end, signal_exactly};
use rustix::process::Signal;

use crate::lab::{Lab, PATIENCE, wait_for};

// I8, I9: what the disk says is shown, and why.
#[test]
fn whoever_asks_a_stopped_daemon_is_shown_what_the_disk_says() {
    let lab = Lab::new();
    let id = lab.run("say one\nbarrier here");
    lab.reach("here");
    let daemon = Identity::of(lab.daemon_pid()).expect("it lives");
    signal_exactly(&daemon, Signal::STOP).expect("stopped");
    let (listed, status) = std::thread::scope(|scope| {
        let listed = scope.spawn(|| lab.ran(&["ps"]));
        let status = scope.spawn(|| lab.ran(&["status", &id]));
        (listed.join().expect("no panic"), status.join().expect("no panic"))
    });
    signal_exactly(&daemon, Signal::CONT).expect("goes on");
    for shown in [listed, status] {
        let said = format!("process {}) does not answer", daemon.pid);
        let shown = shown.exits(0).tells(&said).tells("rekindle restart");
        assert!(shown.out.contains("running") && shown.out.contains(&said), "{}", shown.out);
        assert!(!shown.out.contains("no daemon") && !shown.out.contains("none is running"), "{}", shown.out);
    }
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
}

/// Connects, asks nothing and goes; tells whether there was still room.
fn knock(socket: &str) -> bool {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let visitor = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
    match connect(&visitor, &SocketAddrUnix::new(socket).expect("a short path")) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error, rustix::io::Errno::AGAIN, "its queue is full");
            false
        }
    }
}

// I4
#[test]
fn a_stopped_daemon_is_named_by_stop_and_replaced_by_restart() {
    let lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let daemon = Identity::of(lab.daemon_pid()).expect("it lives");
    signal_exactly(&daemon, Signal::STOP).expect("stopped");
    // Those who asked before and went are still in its queue.
    let described = rekindle_lab::daemon_file(&lab.home());
    let socket = described["socket"].as_str().expect("a path").to_owned();
    while knock(&socket) {}
    let begin = std::time::Instant::now();
    let said = format!("the daemon (process {}) does not answer", daemon.pid);
    lab.ran(&["stop"]).exits(5).tells(&said).tells("rekindle restart");
    let restarted = lab.ran(&["restart"]).exits(0).tells(&said).tells("1 agent kept running");
    assert!(begin.elapsed().as_secs() < 20, "{:?}: {restarted:?}", begin.elapsed());
    assert!(await_end(&daemon, PATIENCE).expect("looked"));
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.said(&id), "onetwo");
}

// I13
#[test]
fn stop_all_ends_the_agents_of_a_stopped_daemon_too() {
    let lab = Lab::new();
    lab.run("say one\nbarrier here");
    lab.reach("here");
    let daemon = Identity::of(lab.daemon_pid()).expect("it lives");
    signal_exactly(&daemon, Signal::STOP).expect("stopped");
    lab.ran(&["stop", "--all"]).exits(0).tells("does not answer").tells("with every agent");
    assert!(await_end(&daemon, PATIENCE).expect("looked"));
    assert!(lab.living_holders().is_empty() && !lab.daemon_described());
}

// I4, I8: someone has cleaned the directory of sockets.
#[test]
fn a_daemon_whose_socket_is_gone_is_named_and_replaced() {
    let lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let daemon = Identity::of(lab.daemon_pid()).expect("it lives");
    let described = rekindle_lab::daemon_file(&lab.home());
    std::fs::remove_file(described["socket"].as_str().expect("a path")).expect("removed");
    let said = format!("the daemon (process {}) cannot be reached: its socket is gone", daemon.pid);
    for arguments in [
        &["stop"][..],
        &["send", &id, "say x"],
        &["answer", "yes"],
        &["run", "x", "--", "true"],
        &["log", "-f"],
    ] {
        lab.ran(arguments).exits(5).tells(&said).tells("rekindle restart");
    }
    for arguments in [&["ps"][..], &["status"]] {
        let shown = lab.ran(arguments).exits(0).tells(&said).tells("rekindle restart");
        assert!(shown.out.contains("running") && shown.out.contains("cannot be reached"), "{}", shown.out);
    }
    lab.ran(&["serve"]).exits(2).tells("in use by process").tells("rekindle serve --takeover");
    lab.ran(&["restart"]).exits(0).tells(&said).tells("1 agent kept running");
    assert!(await_end(&daemon, PATIENCE).expect("looked"));
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.said(&id), "onetwo");
}

// I8
#[test]
fn a_daemon_without_room_for_another_caller_hides_nothing() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("descriptors");
    let lab = Lab::new();
    let id = lab.run("say one\nbarrier here");
    lab.reach("here");
    let described = rekindle_lab::daemon_file(&lab.home());
    let socket = described["socket"].as_str().expect("a path");
    let connect = || std::os::unix::net::UnixStream::connect(socket).expect("taken");
    let callers: Vec<_> = (0..1024).map(|_| connect()).collect();
    for arguments in [&["ps"][..], &["status"], &["status", &id]] {
        let shown = lab.ran(arguments).exits(0).tells("accepts no more connections");
        assert!(shown.out.contains("running") && !shown.out.contains("no daemon"), "{}", shown.out);
    }
    drop(callers);
    lab.pass("here");
}

/// I8, I9: a holder that was stopped in the middle of a turn is not said to answer, and not taken for dead.
#[test]
fn a_stopped_holder_is_seen_not_to_answer_while_its_agent_is_at_work() {
    let lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let proof = || lab.show(&id)["evidence"]["holder"]["proof"].as_str().map(str::to_owned);
    assert_eq!(proof().as_deref(), Some("lock"));
    let holder = lab.living_holders().remove(0);
    signal_exactly(&holder, Signal::STOP).expect("stopped");
    wait_for("its silence to be noticed", || (proof()? == "unresponsive").then_some(()));
    assert_eq!(lab.status(&id), "running");
    signal_exactly(&holder, Signal::CONT).expect("goes on");
    wait_for("its answer", || (proof()? == "lock").then_some(()));
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.said(&id).as_str(), lab.agents().len()), ("onetwo", 1));
}
