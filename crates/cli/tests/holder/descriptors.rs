//! Holders that are started with hardly any descriptors.

use std::os::unix::fs::PermissionsExt;

use rekindle_holder::client::{SpawnError, start};
use rekindle_holder::identity::{Identity, Presence};
use rekindle_holder::wire::Mode;

use crate::lab::{Held, Lab, env, limits};

/// Has a holder started by a shell that lowers its limit of descriptors first.
fn start_limited(lab: &Lab, argv: &[&str], ulimit: &str) -> Result<Held, SpawnError> {
    let mut prepared = lab.prepare(argv, limits());
    let script = lab.path(&format!("{}.sh", prepared.launch.holder_id));
    let text =
        format!("#!/bin/sh\nulimit {ulimit} || exit 9\nexec '{}' \"$@\"\n", prepared.executable.display());
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("executable");
    prepared.executable = script;
    let spawned = start(&prepared)?;
    Ok(Held { dir: prepared.dir.clone(), holder_id: prepared.launch.holder_id.clone(), spawned })
}

#[test]
fn a_supervisor_with_a_low_limit_makes_neither_holder_nor_agent_as_poor() {
    let lab = Lab::new();
    let held =
        start_limited(&lab, &["sh", "-c", "test $(ulimit -n) -gt 900 && echo enough; cat"], "-S -n 10");
    let held = held.expect("a holder");
    let mut control = held.control(1);
    control.start(env()).expect("the agent starts");
    held.wait_for_line("enough");
}

// Where nobody can raise the limit, a holder that cannot begin says why: that it lacks descriptors, which come back.
#[test]
fn a_holder_that_cannot_begin_for_want_of_descriptors_says_so() {
    let lab = Lab::new();
    let mut ready = 0;
    for most in 5..30 {
        match start_limited(&lab, &["cat"], &format!("-n {most}")) {
            Ok(mut held) => {
                ready += 1;
                let begun = held.connect(Mode::Control, 1).is_ok();
                let process = Identity::of(held.pid()).and_then(|process| process.presence());
                let lives = matches!(process, Ok(Presence::Alive));
                assert!(begun || lives, "with {most} it said that it was ready, and ended");
                held.kill();
            }
            Err(SpawnError::Refused { message }) => {
                assert!(message.contains("(os error 24)"), "with {most}: {message}");
            }
            Err(error) => panic!("with {most}: {error}"),
        }
    }
    assert!(ready > 0, "some are enough");
}
