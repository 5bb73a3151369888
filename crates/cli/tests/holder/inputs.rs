//! What supervisors send: once, in order, whole, or not at all.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rekindle_holder::client::{Control, RequestError};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::journal::hex;
use rekindle_holder::wire::{Event, Input, Mode, Refusal, Request};
use sha2::{Digest, Sha256};

use crate::lab::{Lab, PATIENCE, limits, wait_for, wait_for_event};

/// Reads lines, writes each to a file and back.
const ECHO: &[&str] = &["tee", "received"];

fn refusal(error: RequestError) -> Refusal {
    match error {
        RequestError::Refused(refused) => refused.reason,
        other => panic!("not refused but {other}"),
    }
}

// I5
#[test]
fn an_input_that_is_sent_again_is_answered_and_not_delivered_again() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    let first = control.input(1, "prompt", b"one\n").expect("accepted");
    // The answer was lost with the supervisor that waited for it; the next one sends the same number.
    drop(control);
    let mut control = held.control(2);
    assert_eq!(control.marks().accepted, 1);
    assert_eq!(control.input(1, "prompt", b"one\n").expect("accepted before"), first);
    control.input(2, "prompt", b"two\n").expect("accepted");
    held.wait_for_line("two");
    assert_eq!(std::fs::read_to_string(lab.path("received")).expect("a record"), "one\ntwo\n");
}

// I5
#[test]
fn other_bytes_under_a_used_number_and_a_number_too_far_are_refused() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    control.input(1, "prompt", b"one\n").expect("accepted");
    assert_eq!(refusal(control.input(1, "prompt", b"other\n").expect_err("used")), Refusal::Conflict);
    assert_eq!(refusal(control.input(5, "prompt", b"five\n").expect_err("too far")), Refusal::Gap);
    control.input(2, "prompt", b"two\n").expect("accepted");
    held.wait_for_line("two");
    assert_eq!(held.lines(), ["one", "two"]);
}

// I5
#[test]
fn a_supervisor_killed_in_the_middle_of_a_large_input_sends_nothing_of_it() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(&["tee", "received"], limits());
    let large: Vec<u8> = (0..8 << 20).map(|n: u32| b'a' + (n % 26) as u8).chain([b'\n']).collect();
    // Half of it, with the exact frames of a supervisor, and then the connection is cut.
    let half = large.len() / 2;
    let raw = half_an_input(&held.dir, &large, half);
    drop(raw);
    wait_for("the half to be forgotten", || {
        let marks = control.status().ok();
        marks.is_none().then_some(())
    });
    let mut control = held.control(3);
    assert_eq!(control.marks().accepted, 0, "half an input does not count");
    control.input(1, "prompt", &large).expect("all of it");
    wait_for("the whole line", || {
        held.lines().iter().any(|line| line.len() == large.len() - 1).then_some(())
    });
    assert_eq!(std::fs::read(lab.path("received")).expect("a record"), large, "exactly one copy");
}

/// Sends the first `half` bytes of an input over a connection of its own, which takes command.
fn half_an_input(dir: &HolderDir, bytes: &[u8], half: usize) -> UnixStream {
    let control = Control::connect(dir, Mode::Control, "boot_2", 2, PATIENCE).expect("let in");
    let mut stream = raw(&control);
    let mut offset = 0;
    for piece in bytes[..half].chunks(256 << 10) {
        let part = Input {
            input: 1,
            kind: "prompt".into(),
            sha256: hex(&Sha256::digest(bytes)),
            len: bytes.len() as u64,
            offset,
        };
        offset += piece.len() as u64;
        let mut frame = Vec::new();
        Request::Input { epoch: 2, part }.frame(piece.to_vec()).write(&mut frame);
        stream.write_all(&frame).expect("the holder reads");
    }
    stream
}

/// The connection itself, to send what a supervisor would not.
fn raw(control: &Control) -> UnixStream {
    let stream = UnixStream::from(control.as_fd().try_clone_to_owned().expect("a descriptor"));
    stream.set_nonblocking(false).expect("a socket");
    stream
}

// I5
#[test]
fn an_agent_that_does_not_read_gets_its_line_whole_once_it_does() {
    let lab = Lab::new();
    let script = "until [ -e go ]; do sleep 0.01; done; exec tee received";
    let (held, mut control) = lab.shell(script, limits());
    let long: Vec<u8> = vec![b'x'; 300_000].into_iter().chain([b'\n']).collect();
    control.input(1, "prompt", &long).expect("accepted although the pipe is too small");
    control.input(2, "cancel", b"after\n").expect("and so is the next");
    let marks = control.status().expect("it answers");
    assert_eq!((marks.accepted, marks.delivered), (2, 0));
    // The supervisor dies between accepted and delivered.
    drop(control);
    std::fs::write(lab.path("go"), "").expect("a file");
    held.wait_for_line("after");
    let control = held.control(2);
    assert_eq!((control.marks().accepted, control.marks().delivered), (2, 2));
    let received = std::fs::read(lab.path("received")).expect("a record");
    assert_eq!(received, [&long[..], b"after\n"].concat());
}

#[test]
fn bytes_without_the_hash_they_should_have_are_refused_and_the_number_stays_free() {
    let lab = Lab::new();
    let (held, control) = lab.running(ECHO, limits());
    drop(control);
    let mut control = held.control(2);
    let part = Input { input: 1, kind: "prompt".into(), sha256: hex(&[7; 32]), len: 4, offset: 0 };
    let mut frame = Vec::new();
    Request::Input { epoch: 2, part }.frame(b"bad\n".to_vec()).write(&mut frame);
    raw(&control).write_all(&frame).expect("sent");
    let event = wait_for_event(&mut control, |event| matches!(event, Event::Refused(_)));
    assert!(matches!(event, Event::Refused(refused) if refused.reason == Refusal::Hash));
    let mut control = held.control(3);
    control.input(1, "prompt", b"good\n").expect("accepted");
    held.wait_for_line("good");
    assert_eq!(held.lines(), ["good"]);
}

#[test]
fn an_input_after_the_agents_end_of_input_is_refused() {
    let lab = Lab::new();
    let (_held, mut control) = lab.shell("trap '' TERM; exec sleep 30", limits());
    control.stop("test", "test", Duration::from_secs(5)).expect("it begins");
    assert_eq!(refusal(control.input(1, "prompt", b"late\n").expect_err("too late")), Refusal::NotNow);
}

/// How often the journal says that the input was closed.
fn closings(dir: &HolderDir) -> usize {
    let journal = std::fs::read_to_string(dir.journal().join("00000001.log")).expect("a segment");
    journal.matches("\"ctl\":\"close_input\"").count()
}

// I5: whoever decided it is gone before the agent has had anything.
#[test]
fn an_end_of_input_comes_behind_everything_accepted_even_if_its_sender_dies_at_once() {
    let lab = Lab::new();
    let script = "while [ ! -e go ]; do sleep 0.01; done; wc -c; exit 4";
    let (mut held, mut control) = lab.shell(script, limits());
    // Far more than the pipe takes while nobody reads it.
    let large: Vec<u8> = vec![b'x'; 1 << 20].into_iter().chain([b'\n']).collect();
    control.input(1, "prompt", &large).expect("accepted");
    control.input(2, "prompt", b"last\n").expect("accepted");
    control.close_input(2).expect("decided");
    drop(control);
    let mut next = held.control(2);
    assert_eq!((next.marks().accepted, next.marks().delivered), (2, 0), "nothing was delivered yet");
    next.close_input(2).expect("decided before");
    std::fs::write(lab.path("go"), "").expect("a file");
    assert_eq!(held.ended().code, Some(4));
    assert_eq!(held.lines().iter().map(|line| line.trim()).collect::<Vec<_>>(), ["1048582"]);
    assert_eq!(closings(&held.dir), 1, "decided once");
}

#[test]
fn after_the_end_of_input_nothing_is_taken_and_what_was_taken_is_known() {
    let lab = Lab::new();
    let script = "cat; echo over; while [ ! -e go ]; do sleep 0.01; done";
    let (mut held, mut control) = lab.shell(script, limits());
    control.input(1, "prompt", b"one\n").expect("accepted");
    assert_eq!(refusal(control.close_input(0).expect_err("one was accepted")), Refusal::Conflict);
    assert_eq!(refusal(control.close_input(2).expect_err("two was not")), Refusal::Gap);
    control.close_input(1).expect("decided");
    held.wait_for_line("over");
    control.close_input(1).expect("so it is");
    assert_eq!(refusal(control.input(2, "prompt", b"two\n").expect_err("closed")), Refusal::NotNow);
    control.input(1, "prompt", b"one\n").expect("known");
    std::fs::write(lab.path("go"), "").expect("a file");
    assert_eq!(held.ended().code, Some(0));
    assert_eq!(held.lines(), ["one", "over"]);
    assert_eq!(closings(&held.dir), 1, "decided once");
}

#[test]
fn there_is_no_end_of_input_without_an_agent_nor_for_one_who_does_not_command() {
    let lab = Lab::new();
    let held = lab.holder(&["cat"], limits());
    let mut control = held.control(1);
    assert_eq!(refusal(control.close_input(0).expect_err("no agent")), Refusal::NotNow);
    control.start(crate::lab::env()).expect("the agent starts");
    let mut newer = held.control(2);
    let error = control.close_input(0).expect_err("another commands");
    assert!(matches!(error, RequestError::Fenced { by: 2 } | RequestError::Closed), "{error}");
    newer.input(1, "prompt", b"still open\n").expect("accepted");
    held.wait_for_line("still open");
}

// I1: the third sync is that of the decision; the two before are for the attachment and the start.
#[test]
fn an_end_of_input_that_cannot_be_made_durable_is_refused_and_does_not_come() {
    let lab = Lab::new();
    let prepared = lab.prepare(&["cat"], limits());
    let executable =
        crate::storage::holder_after(&lab, &prepared.executable, "export REKINDLE_FAIL_SYNC=3-9");
    let failing = rekindle_holder::client::Prepared { executable, ..prepared.clone() };
    let spawned = rekindle_holder::client::start(&failing).expect("a holder");
    let held = crate::lab::Held { dir: prepared.dir, holder_id: prepared.launch.holder_id.clone(), spawned };
    let mut control = held.control(1);
    control.start(crate::lab::env()).expect("the agent starts");
    assert_eq!(refusal(control.close_input(0).expect_err("not durable")), Refusal::NoSpace);
    wait_for("the journal to be written again", || control.status().ok()?.trouble.is_none().then_some(()));
    wait_for("an input to be accepted", || control.input(1, "prompt", b"open\n").ok());
    held.wait_for_line("open");
}
