//! Full disks and broken journals.

use std::os::unix::fs::FileExt;

use rekindle_holder::client::{FollowError, Follower, RequestError, harvest};
use rekindle_holder::dir::Limits;
use rekindle_holder::wire::{Event, Refusal};

use crate::lab::{Held, Lab, limits, wait_for, wait_for_event};

/// A small file system, where we may mount one.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: std::path::PathBuf, size: &str) -> Option<SmallDisk> {
        std::fs::create_dir_all(&path).expect("a directory");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"])
            .arg(&path)
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

// I12
#[test]
fn a_full_disk_pauses_the_agent_and_it_goes_on_by_itself_when_there_is_room() {
    let lab = Lab::new();
    // Only root may mount; elsewhere the bound on unread bytes shows the same pause.
    let Some(_disk) = SmallDisk::mount(lab.path("holders"), "12m") else { return };
    let bounds = Limits { segment_bytes: 1 << 20, ..limits() };
    let filler = lab.path("holders").join("filler");
    let script = "while read go; do i=0; while [ $i -lt 40 ]; do i=$((i+1)); \
                  echo \"{\\\"n\\\":$i,\\\"pad\\\":\\\"$(head -c 20000 /dev/zero | tr '\\0' x)\\\"}\"; done; done";
    let (mut held, mut control) = lab.shell(script, bounds);
    control.input(1, "prompt", b"go\n").expect("accepted");
    let count = |held: &Held| held.lines().len();
    wait_for("the first forty lines", || (count(&held) == 40).then_some(()));
    // Fill it to the last byte.
    let file = std::fs::File::create(&filler).expect("a file");
    let block = vec![0; 1 << 16];
    let mut offset = 0;
    while file.write_all_at(&block, offset).is_ok() {
        offset += block.len() as u64;
    }
    control.input(2, "prompt", b"go\n").map_or_else(
        |error| {
            assert!(matches!(&error, RequestError::Refused(no) if no.reason == Refusal::NoSpace), "{error}")
        },
        |_| {
            // It fitted into what was left; the agent's words will not.
            wait_for_event(
                &mut control,
                |event| matches!(event, Event::Health(health) if health.trouble.is_some()),
            );
        },
    );
    assert!(!held.tree().is_empty(), "the agent lives");
    std::fs::remove_file(&filler).expect("room is made");
    let accepted = wait_for("the journal to be written again", || {
        let marks = control.status().ok()?;
        marks.trouble.is_none().then_some(marks.accepted)
    });
    if accepted == 1 {
        control.input(2, "prompt", b"go\n").expect("accepted now");
    }
    wait_for("the next forty lines", || (count(&held) == 80).then_some(()));
    drop(control);
    let mut control = held.control(2);
    control.stop("test", "test", std::time::Duration::from_secs(5)).expect("it begins");
    held.ended();
}

// I12: room again, but less than is to be kept: what is told is the bound, and an end need not wait for more.
#[test]
fn with_room_again_but_below_the_bound_the_bound_is_what_is_told_and_a_signal_ends_it() {
    let lab = Lab::new();
    let Some(_disk) = SmallDisk::mount(lab.path("holders"), "12m") else { return };
    // At first there is more; what the reserve gives back is less.
    let bounds = Limits { segment_bytes: 1 << 20, free_bytes: 6 << 20, ..limits() };
    let script = "while read go; do head -c 600000 /dev/zero | tr '\\0' x; echo; done";
    let (mut held, mut control) = lab.shell(script, bounds);
    let file = std::fs::File::create(lab.path("holders").join("filler")).expect("a file");
    let block = vec![0; 1 << 12];
    let mut offset = 0;
    while file.write_all_at(&block, offset).is_ok() {
        offset += block.len() as u64;
    }
    let mut told = Vec::new();
    // Whether the input fits into what is left or not, something will not.
    if let Err(error) = control.input(1, "prompt", b"go\n") {
        assert!(matches!(&error, RequestError::Refused(no) if no.reason == Refusal::NoSpace), "{error}");
    }
    wait_for_event(&mut control, |event| match event {
        Event::Health(health) => {
            told.extend(health.trouble.clone());
            told.last().is_some_and(|trouble| trouble.starts_with("only "))
        }
        _ => false,
    });
    assert!(told[0].contains("cannot be written"), "{told:?}");
    let trouble = control.status().expect("answered").trouble;
    assert_eq!(trouble.as_ref(), told.last());
    assert!(!held.tree().is_empty(), "the agent lives");
    let holder = rekindle_holder::identity::Identity::of(held.pid()).expect("it lives");
    rekindle_holder::tree::signal_exactly(&holder, rustix::process::Signal::TERM).expect("asked to end");
    let exit = held.ended();
    assert_eq!(exit.reason, rekindle_holder::dir::ExitReason::HolderSigterm, "{exit:?}");
    assert!(held.tree().is_empty(), "nobody is left");
}

// I12: a file that may not grow, without any need for root.
#[test]
fn a_limit_on_the_size_of_files_loses_nothing() {
    let lab = Lab::new();
    let prepared = lab.prepare(
        &[
            "sh",
            "-c",
            "read go; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo \"{\\\"n\\\":$i}\"; done; cat",
        ],
        limits(),
    );
    // The shell sets the limit for itself and what it becomes; a reserve cannot be made then, and need not.
    let limited = rekindle_holder::client::Prepared {
        executable: holder_after(&lab, &prepared.executable, "ulimit -f 64"),
        ..prepared.clone()
    };
    let spawned = rekindle_holder::client::start(&limited).expect("a holder");
    let held = Held { dir: prepared.dir, holder_id: prepared.launch.holder_id.clone(), spawned };
    let mut control = held.control(1);
    control.start(crate::lab::env()).expect("the agent starts");
    control.input(1, "prompt", b"go\n").expect("accepted");
    wait_for("all lines", || (held.lines().len() == 3000).then_some(()));
    for (index, line) in held.lines().iter().enumerate() {
        assert_eq!(*line, format!("{{\"n\":{}}}", index + 1));
    }
}

/// A script that becomes a holder after a command of the shell.
pub(crate) fn holder_after(lab: &Lab, holder: &std::path::Path, command: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.path("limited");
    let script = format!("#!/bin/sh\n{command}\nexec '{}' \"$@\"\n", holder.display());
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("allowed");
    path
}

// I1, I12: the third sync is that of the first input; the two before are for the attachment and the start.
#[test]
fn a_sync_that_fails_seals_its_segment_and_nothing_is_falsely_accepted() {
    for (failing, accepted) in [("3", true), ("3-9", false)] {
        let lab = Lab::new();
        let prepared = lab.prepare(&["cat"], limits());
        let command = format!("export REKINDLE_FAIL_SYNC={failing}");
        let executable = holder_after(&lab, &prepared.executable, &command);
        let failing = rekindle_holder::client::Prepared { executable, ..prepared.clone() };
        let spawned = rekindle_holder::client::start(&failing).expect("a holder");
        let held = Held { dir: prepared.dir, holder_id: prepared.launch.holder_id.clone(), spawned };
        let mut control = held.control(1);
        control.start(crate::lab::env()).expect("the agent starts");
        match control.input(1, "prompt", b"one\n") {
            Ok(_) => assert!(accepted, "accepted although it cannot be made durable"),
            Err(error) => assert!(!accepted && matches!(error, RequestError::Refused(_)), "{error}"),
        }
        assert!(held.dir.journal().join("00000002.log").exists(), "another segment was begun");
        // The disk is well again: what was refused is sent again, what was accepted is not delivered twice.
        wait_for("the journal to be written again", || {
            control.status().ok()?.trouble.is_none().then_some(())
        });
        wait_for("the input to be accepted", || control.input(1, "prompt", b"one\n").ok());
        held.wait_for_line("one");
        control.input(2, "prompt", b"two\n").expect("accepted");
        held.wait_for_line("two");
        assert_eq!(held.lines(), ["one", "two"]);
    }
}

fn dead_with_lines(lab: &Lab, count: u32) -> Held {
    let script = format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo \"{{\\\"n\\\":$i}}\"; done");
    let (mut held, control) = lab.shell(&script, limits());
    drop(control);
    held.ended();
    held
}

// I10, I12
#[test]
fn a_dead_journal_cut_in_its_last_record_is_read_up_to_it() {
    let lab = Lab::new();
    let held = dead_with_lines(&lab, 100);
    let segment = held.dir.journal().join("00000001.log");
    let len = std::fs::metadata(&segment).expect("a segment").len();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&segment)
        .and_then(|file| file.set_len(len - 3))
        .expect("cut");
    assert_eq!(held.lines().len(), 100, "only the record of the exit is gone");
    let harvested = harvest(&held.dir).expect("a dead holder");
    assert_eq!(harvested.damage, None, "a torn end is no damage");
}

// I10, I12
#[test]
fn a_dead_journal_damaged_in_the_middle_is_read_up_to_there_and_says_so() {
    let lab = Lab::new();
    let held = dead_with_lines(&lab, 100);
    let segment = held.dir.journal().join("00000001.log");
    let bytes = std::fs::read(&segment).expect("a segment");
    let at = bytes.windows(8).position(|window| window == b"{\"n\":50}").expect("the line");
    let file = std::fs::OpenOptions::new().write(true).open(&segment).expect("a segment");
    file.write_all_at(b"?", at as u64).expect("damaged");
    let harvested = harvest(&held.dir).expect("a dead holder");
    let damage = harvested.damage.expect("damage");
    assert_eq!(damage.path, segment);
    let mut follower = Follower::new(&held.dir, 1);
    let mut lines = 0;
    let error = loop {
        match follower.next_item() {
            Ok(Some(item)) => lines += u32::from(matches!(item, rekindle_holder::journal::Item::Line { .. })),
            Ok(None) => panic!("the damage was not noticed"),
            Err(error) => break error,
        }
    };
    assert_eq!(lines, 49, "everything before it is read");
    assert!(matches!(error, FollowError::Damaged(_)), "{error}");
}
