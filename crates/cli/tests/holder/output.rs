//! What agents write: byte for byte, in order, whatever it is and whoever listens.

use std::time::{Duration, Instant};

use rekindle_holder::client::Follower;
use rekindle_holder::dir::Limits;
use rekindle_holder::journal::{Item, OutFlags};
use rekindle_holder::wire::{Event, Phase};

use crate::lab::{Held, Lab, limits, wait_for, wait_for_event};

fn odd_lines(held: &Held) -> Vec<(Vec<u8>, OutFlags)> {
    let mut follower = Follower::new(&held.dir, 1);
    let mut lines = Vec::new();
    while let Some(item) = follower.next_item().expect("a journal") {
        if let Item::Line { bytes, flags, .. } = item {
            lines.push((bytes.into_owned(), flags));
        }
    }
    lines
}

// I4
#[test]
fn a_line_of_twenty_mebibytes_written_while_nobody_is_attached_is_byte_identical() {
    let lab = Lab::new();
    let (mut held, control) = lab.shell(
        "read go; head -c 15728640 /dev/urandom | base64 -w 0 | tee line; echo; echo '{\"after\":1}'",
        limits(),
    );
    let mut control = control;
    control.input(1, "prompt", b"go\n").expect("accepted");
    drop(control);
    held.ended();
    let lines = odd_lines(&held);
    let written = std::fs::read(lab.path("line")).expect("what was written");
    assert_eq!(written.len(), 20 << 20);
    assert!(lines[0].0 == written, "byte for byte");
    assert!(!lines[0].1.truncated);
    assert_eq!(lines[1].0, b"{\"after\":1}");
}

// I12
#[test]
fn a_line_of_a_hundred_mebibytes_is_cut_and_marked_and_the_turn_goes_on() {
    let lab = Lab::new();
    let (mut held, _control) = lab
        .shell("printf '{'; head -c 104857599 /dev/zero | tr '\\0' x; echo; echo '{\"after\":1}'", limits());
    assert_eq!(held.ended().code, Some(0));
    let lines = odd_lines(&held);
    assert_eq!(lines[0].0.len() as u64, limits().line_bytes);
    assert!(lines[0].1.truncated);
    assert_eq!(lines[1], (b"{\"after\":1}".to_vec(), OutFlags::default()));
}

#[test]
fn noise_is_kept_and_marked_and_nothing_is_answered() {
    let lab = Lab::new();
    let script =
        r#"printf 'Welcome!\n\033[31mred\033[0m\n"a string"\n\n\377\376\n{"ok":1}\n'; cat >received"#;
    let (mut held, mut control) = lab.shell(script, limits());
    held.wait_for_line("{\"ok\":1}");
    control.stop("test", "test", Duration::from_secs(5)).expect("it begins");
    held.ended();
    let lines = odd_lines(&held);
    let noise: Vec<bool> = lines.iter().map(|(_, flags)| flags.noise).collect();
    assert_eq!(noise, [true, true, true, true, true, false]);
    assert_eq!(lines[4].0, b"\xff\xfe");
    assert_eq!(std::fs::read(lab.path("received")).expect("a record"), b"", "nothing was said to it");
}

#[test]
fn ten_megabytes_of_errors_before_the_first_word_stall_nobody_and_their_end_is_kept() {
    let lab = Lab::new();
    let script =
        "head -c 10000000 /dev/zero | tr '\\0' e >&2; echo last words >&2; echo '{\"ready\":1}'; cat";
    let bounds = Limits { stderr_bytes: 1 << 20, ..limits() };
    let (mut held, mut control) = lab.shell(script, bounds);
    held.wait_for_line("{\"ready\":1}");
    control.stop("test", "test", Duration::from_secs(5)).expect("it begins");
    let exit = held.ended();
    assert!(exit.stderr_tail.ends_with("last words\n"), "{}", exit.stderr_tail.len());
    let kept: u64 =
        (0..2).filter_map(|n| std::fs::metadata(held.dir.stderr(n)).ok()).map(|file| file.len()).sum();
    assert!(kept < 3 << 20, "{kept} bytes of errors");
}

#[test]
fn a_last_line_without_a_newline_is_a_line() {
    let lab = Lab::new();
    let (mut held, _control) = lab.shell("echo '{\"a\":1}'; printf '{\"b\":2}'", limits());
    assert_eq!(held.ended().code, Some(0));
    let lines = odd_lines(&held);
    assert_eq!(lines[1], (b"{\"b\":2}".to_vec(), OutFlags { unterminated: true, ..OutFlags::default() }));
}

// I4
#[test]
fn half_a_line_is_in_the_journal_before_its_other_half_is_written() {
    let lab = Lab::new();
    let (mut held, _control) = lab.shell("printf '{\"half\":'; exec sleep 60", limits());
    wait_for("the half line", || (held.lines() == ["{\"half\":"]).then_some(()));
    held.kill();
    assert_eq!(held.lines(), ["{\"half\":"], "the holder's death takes nothing with it");
}

// I12
#[test]
fn a_burst_beyond_the_bound_pauses_the_agent_until_it_is_acknowledged() {
    let lab = Lab::new();
    let bounds = Limits { unacked_bytes: 4 << 20, segment_bytes: 1 << 20, ..limits() };
    let script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); head -c 65000 /dev/zero | tr '\\0' x; echo; done";
    let (mut held, mut control) = lab.shell(script, bounds);
    let event = wait_for_event(&mut control, |event| matches!(event, Event::Health(_)));
    assert!(matches!(event, Event::Health(health) if health.trouble.is_some()));
    let marks = control.status().expect("it answers");
    assert_eq!(marks.phase, Phase::Blocked);
    // Nobody is killed, nothing is lost: read and acknowledge, and it goes on.
    let mut follower = Follower::new(&held.dir, 1);
    let mut lines = 0;
    let deadline = Instant::now() + crate::lab::PATIENCE;
    while lines < 200 {
        assert!(Instant::now() < deadline, "only {lines} lines");
        while let Some(item) = follower.next_item().expect("a journal") {
            if let Item::Line { bytes, .. } = &item {
                assert_eq!(bytes.len(), 65_000);
                lines += 1;
            }
        }
        // The end may come while we acknowledge.
        let _ = control.ack(follower.next_seq() - 1);
        let _ = control.next_event(Duration::from_millis(20));
    }
    assert_eq!(held.ended().code, Some(0));
}

// Journals may be trimmed below what was acknowledged, and never above.
#[test]
fn acknowledged_segments_go_and_nothing_else_does() {
    let lab = Lab::new();
    let bounds = Limits { segment_bytes: 64 << 10, ..limits() };
    let (held, mut control) =
        lab.shell("i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo \"{\\\"n\\\":$i,\\\"pad\\\":\\\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\\"}\"; done; cat", bounds);
    wait_for("all lines", || {
        let mut follower = Follower::new(&held.dir, 1);
        let mut count = 0;
        while let Some(item) = follower.next_item().expect("a journal") {
            count += usize::from(matches!(item, Item::Line { .. }));
        }
        (count == 4000).then_some(())
    });
    let segments = || std::fs::read_dir(held.dir.journal()).expect("a journal").count();
    let before = segments();
    assert!(before > 4, "{before} segments");
    control.ack(2000).expect("sent");
    wait_for("segments to go", || (segments() < before).then_some(()));
    let mut follower = Follower::new(&held.dir, 2001);
    let first = follower.next_item().expect("a journal").expect("an item");
    assert_eq!(first.seq(), 2001, "what was not acknowledged is there");
}
