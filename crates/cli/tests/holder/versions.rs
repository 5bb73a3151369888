//! Supervisors and holders of other versions: what they add is passed over, what they cannot do is not asked, and
//! where they do not understand each other the agent goes on and can still be followed.

use rekindle_holder::client::{ConnectError, Control, Follower, RequestError};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::journal::Item;
use rekindle_holder::wire::{CLOSE_INPUT, Event, Frame, Mode, PREAMBLE_LEN, Refusal, WireError};

use crate::lab::{Lab, PATIENCE, env, limits, wait_for, wait_for_event};
use crate::relay::{Change, relay};

fn connect(dir: &HolderDir, epoch: u64) -> Result<Control, ConnectError> {
    Control::connect(dir, Mode::Control, &format!("boot_{epoch}"), epoch, PATIENCE)
}

/// A frame of a kind that nobody here knows.
fn unknown(ignorable: bool) -> Frame {
    let header = br#"{"is":"from_the_future","list":[1,{"two":null}]}"#.to_vec();
    Frame { kind: 222, ignorable, header, payload: b"\x00\xff raw".to_vec() }
}

fn set_versions(preamble: &mut [u8; PREAMBLE_LEN], low: u8, high: u8) {
    preamble[4..8].copy_from_slice(&[low, 0, high, 0]);
}

/// Does with a holder whatever there is to do.
fn everything(control: &mut Control) {
    control.start(env()).expect("the agent starts");
    control.input(1, "prompt", b"one\n").expect("accepted");
    let large: Vec<u8> = vec![b'x'; 300_000].into_iter().chain([b'\n']).collect();
    control.input(2, "prompt", &large).expect("accepted");
    wait_for_event(control, |event| matches!(event, Event::Delivered { input: 2 }));
    control.ping().expect("answered");
    let head = control.status().expect("answered").head;
    control.ack(head).expect("sent");
    control.close_input(2).expect("decided");
    wait_for_event(control, |event| matches!(event, Event::Exited { code: Some(0), .. }));
}

// I4
#[test]
fn frames_of_unknown_kinds_are_passed_over_by_both_sides() {
    let lab = Lab::new();
    let mut held = lab.holder(&["cat"], limits());
    let chatty = Change { before: |_| Some(unknown(true)), ..Change::NOTHING };
    let front = relay(&lab, &held, chatty.clone(), chatty);
    everything(&mut connect(&front, 1).expect("let in"));
    assert_eq!(held.ended().code, Some(0));
    assert_eq!(held.lines()[0], "one");
}

// I4, I9
#[test]
fn a_frame_that_may_not_be_passed_over_ends_the_connection_and_nothing_else() {
    // When the agent has been started.
    let demanding = |count| (count == 3).then(|| unknown(false));
    let demanding = Change { before: demanding, ..Change::NOTHING };
    for (of_supervisor, of_holder) in [(demanding.clone(), Change::NOTHING), (Change::NOTHING, demanding)] {
        let by_holder = (of_holder.before)(3).is_some();
        let lab = Lab::new();
        let held = lab.holder(&["cat"], limits());
        let front = relay(&lab, &held, of_supervisor, of_holder);
        let mut control = connect(&front, 1).expect("let in");
        control.start(env()).expect("the agent starts");
        let error = wait_for("the connection to end", || {
            let accepted = control.input(1, "prompt", b"one\n").map(drop);
            accepted.and_then(|()| control.ping().map(drop)).err()
        });
        if by_holder {
            assert!(matches!(error, RequestError::Wire(WireError::UnknownKind(222))), "{error}");
        } else {
            let malformed = matches!(&error, RequestError::Refused(no) if no.reason == Refusal::Malformed);
            assert!(malformed || matches!(error, RequestError::Closed), "{error}");
        }
        // The agent has noticed nothing, and the next one goes on where this one was.
        let mut next = held.control(2);
        next.input(1, "prompt", b"one\n").expect("accepted, now or before");
        next.input(2, "prompt", b"two\n").expect("accepted");
        held.wait_for_line("two");
        assert_eq!(held.lines(), ["one", "two"]);
    }
}

#[test]
fn feature_bits_and_bytes_that_mean_nothing_here_are_no_obstacle() {
    let lab = Lab::new();
    let mut held = lab.holder(&["cat"], limits());
    let gifted: fn(&mut [u8; PREAMBLE_LEN]) = |preamble| preamble[8..].fill(0xff);
    let gifted = Change { preamble: gifted, ..Change::NOTHING };
    let front = relay(&lab, &held, gifted.clone(), gifted);
    let mut control = connect(&front, 1).expect("let in");
    assert_eq!(control.features(), u32::MAX);
    everything(&mut control);
    assert_eq!(held.ended().code, Some(0));
}

#[test]
fn a_holder_without_a_feature_is_used_without_it() {
    let lab = Lab::new();
    let held = lab.holder(&["cat"], limits());
    let older = Change { preamble: |preamble| preamble[8..12].fill(0), ..Change::NOTHING };
    let front = relay(&lab, &held, Change::NOTHING, older);
    let mut control = connect(&front, 1).expect("let in");
    assert_eq!(control.features() & CLOSE_INPUT, 0);
    control.start(env()).expect("the agent starts");
    let error = control.close_input(0).expect_err("it does not know how");
    assert!(matches!(error, RequestError::TooOld(_)), "{error}");
    control.input(1, "prompt", b"as before\n").expect("accepted");
    held.wait_for_line("as before");
}

#[test]
fn one_that_speaks_more_versions_is_spoken_to_in_the_common_one() {
    let wide = Change { preamble: |preamble| set_versions(preamble, 1, 7), ..Change::NOTHING };
    for (of_supervisor, of_holder) in [(wide.clone(), Change::NOTHING), (Change::NOTHING, wide)] {
        let lab = Lab::new();
        let mut held = lab.holder(&["cat"], limits());
        let front = relay(&lab, &held, of_supervisor, of_holder);
        everything(&mut connect(&front, 1).expect("let in"));
        assert_eq!(held.ended().code, Some(0));
    }
}

// I4, I9: whoever cannot be spoken to is not dead, and what it writes can be read.
#[test]
fn without_a_common_version_the_agent_is_followed_and_left_alone() {
    let newer = Change { preamble: |preamble| set_versions(preamble, 2, 7), ..Change::NOTHING };
    for newer_holder in [true, false] {
        let lab = Lab::new();
        let (held, mut control) = lab.shell("while read line; do echo \"$line\"; done", limits());
        let agent = held.tree();
        let error = if newer_holder {
            connect(&relay(&lab, &held, Change::NOTHING, newer.clone()), 2).expect_err("no common version")
        } else {
            connect(&relay(&lab, &held, newer.clone(), Change::NOTHING), 2).expect_err("no common version")
        };
        match error {
            ConnectError::NoCommonVersion { low: 2, high: 7 } => assert!(newer_holder),
            // A holder that does not speak ours says no, or just hangs up.
            ConnectError::Refused(no) if no.reason == Refusal::Malformed => assert!(!newer_holder),
            ConnectError::HungUp => assert!(!newer_holder),
            other => panic!("{other}"),
        }
        let mut follower = Follower::new(&held.dir, 1);
        for (number, line) in [(1, "one"), (2, "two")] {
            control.input(number, "prompt", format!("{line}\n").as_bytes()).expect("it commands as before");
            wait_for(line, || match follower.next_item().expect("a journal") {
                Some(Item::Line { bytes, .. }) => (bytes == line.as_bytes()).then_some(()),
                _ => None,
            });
        }
        assert_eq!(held.tree(), agent, "the same processes");
        assert_eq!(control.marks().epoch, 1, "and the same commander");
    }
}
