//! Reading logs forward, backward, from any record, and as they grow: against a naive reader of the bytes.

use std::sync::Arc;

use proptest::prelude::*;
use rekindle_store::Codec;
use rekindle_store::commit::Append;
use rekindle_store::log::{Cursor, Follow, Follower, LogReader};
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, marked};

fn reader(bytes: &[u8]) -> LogReader {
    let disk = SimDisk::new(1);
    disk.write_file("/log", bytes);
    LogReader::open(&disk, "/log".as_ref(), Codec::Plain).expect("opens")
}

fn numbered(lengths: &[usize]) -> Vec<u8> {
    let lines = lengths
        .iter()
        .enumerate()
        .map(|(n, len)| format!("{{\"seq\":{},\"x\":\"{}\"}}\n", n + 1, "y".repeat(*len)));
    lines.collect::<String>().into_bytes()
}

/// Returns the byte of the file that a place is, as people are told.
fn byte(place: Cursor) -> usize {
    place.to_string().strip_prefix("byte ").and_then(|byte| byte.parse().ok()).expect("a number")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn forward_backward_and_by_number_agree_with_the_bytes(
        lengths in proptest::collection::vec(prop_oneof![0usize..300, 0usize..300, 50_000usize..150_000], 0..60),
        torn in 0usize..30,
        count in 0usize..70,
    ) {
        let mut bytes = numbered(&lengths);
        let whole = bytes.len();
        bytes.extend_from_slice(&numbered(&[40])[..torn]);
        let reader = reader(&bytes);
        let (mut forward, mut end) = (Vec::new(), Cursor::START);
        let mut lines = reader.forward(Cursor::START);
        while let Some(line) = lines.next().expect("readable") {
            prop_assert_eq!(line.whole, byte(line.end) <= whole);
            prop_assert_eq!(&bytes[byte(line.start)..][..line.bytes.len()], line.bytes);
            if line.whole {
                end = line.end;
                forward.push((line.start, line.bytes.to_vec()));
            }
        }
        prop_assert_eq!(forward.len(), lengths.len());
        let last = reader.last(end, count).expect("readable");
        prop_assert_eq!(&last[..], &forward[forward.len().saturating_sub(count)..]);
        for seq in [1, 2, lengths.len() / 2, lengths.len(), lengths.len() + 1] {
            let expected = seq.checked_sub(1).and_then(|n| forward.get(n)).map(|(start, _)| *start);
            prop_assert_eq!(reader.find(seq as u64).expect("readable"), expected, "record {}", seq);
        }
    }
}

#[test]
fn a_line_too_long_to_hold_is_passed_over_by_its_place() {
    // A little too long is noticed with its end in memory; much too long is passed over in pieces.
    for excess in [5, 1 << 20] {
        let mut bytes = numbered(&[10]);
        let start = bytes.len();
        bytes.extend(std::iter::repeat_n(b'z', (64 << 20) + excess));
        bytes.push(b'\n');
        let end = bytes.len();
        bytes.extend_from_slice(b"{\"seq\":2,\"x\":0}\n");
        let reader = reader(&bytes);
        let mut lines = reader.forward(Cursor::START);
        assert!(lines.next().expect("readable").is_some_and(|line| line.whole));
        let long = lines.next().expect("readable").expect("a line");
        assert_eq!((byte(long.start), byte(long.end), long.whole, long.bytes.len()), (start, end, false, 0));
        assert!(lines.next().expect("readable").is_some_and(|line| line.whole && byte(line.start) == end));
        assert!(lines.next().expect("readable").is_none());
    }
}

#[test]
fn a_follower_sees_each_line_once_and_never_half_a_line() {
    let home = Home::with_sessions(1, 3);
    let mut follower = home.store.follower(home.sessions[0], Cursor::START);
    let Follow::Lines(lines) = follower.poll().expect("readable") else { panic!("no reset") };
    assert_eq!(lines.len(), 4);
    assert_eq!(follower.poll().expect("readable"), Follow::Lines(Vec::new()));
    home.store.append(Append::quick(home.sessions[0], vec![marked(9, 5, None)])).expect("recorded");
    let Follow::Lines(lines) = follower.poll().expect("readable") else { panic!("no reset") };
    assert_eq!(lines.len(), 1);
    // Half a line is not there yet.
    let path = home.store.layout().log(home.sessions[0]);
    let mut bytes = home.disk.read_file(&path).expect("a log");
    let whole = bytes.clone();
    bytes.extend_from_slice(b"{\"seq\":6");
    home.disk.write_file(&path, &bytes);
    let at = follower.at();
    assert_eq!(follower.poll().expect("readable"), Follow::Lines(Vec::new()));
    assert_eq!(follower.at(), at);
    // A log that was rewritten with the same history goes on; a shorter one does not.
    home.disk.remove(&path);
    home.disk.write_file(&path, &whole);
    assert_eq!(follower.poll().expect("readable"), Follow::Lines(Vec::new()));
    let other = Home::with_sessions(1, 9).disk.read_file(&path).expect("a longer log of another history");
    home.disk.remove(&path);
    home.disk.write_file(&path, &other);
    assert_eq!(follower.poll().expect("readable"), Follow::Reset, "not read on in the middle of it");
    assert_eq!(follower.at(), Cursor::START);
    home.disk.remove(&path);
    home.disk.write_file(&path, &whole);
    let Follow::Lines(lines) = follower.poll().expect("readable") else { panic!("no reset") };
    assert_eq!(lines.len(), 5);
    home.disk.truncate_file(&path, 100);
    assert_eq!(follower.poll().expect("readable"), Follow::Reset);
    assert_eq!(follower.at(), Cursor::START);
}

#[test]
fn following_a_log_that_does_not_exist_yet_waits_for_it() {
    let disk = SimDisk::new(1);
    let mut follower = Follower::new(Arc::new(disk.clone()), "/log".into(), Codec::Plain, Cursor::START);
    assert_eq!(follower.poll().expect("nothing yet"), Follow::Lines(Vec::new()));
    disk.write_file("/log", b"{\"seq\":1}\n");
    assert_eq!(follower.poll().expect("readable"), Follow::Lines(vec![b"{\"seq\":1}".to_vec()]));
}
