//! A daemon that is there and says nothing: looking goes on without it.

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;

use crate::lab::Lab;

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
        let shown = shown.exits(0).tells("does not answer").tells("rekindle serve --takeover");
        assert!(shown.out.contains("running"), "{}", shown.out);
    }
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
}
