//! Torn ends, damage in the middle, and what the write-ahead log can put back.

use rekindle_domain::event::Event;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::commit::{Append, Commits};
use rekindle_store::offline::Offline;
use rekindle_store::{AppendError, Completion, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;
use std::sync::Arc;

use crate::common::{Home, created, marked, markers, open};

fn log_path(session: SessionId) -> String {
    format!("/home/sessions/{session}.messages.jsonl")
}

/// A home that holds nothing but one log, as a copy without its write-ahead log would.
fn only_log(session: SessionId, bytes: &[u8]) -> SimDisk {
    let disk = SimDisk::new(3);
    drop(open(&disk, &Arc::new(SimClock::default())).expect("an empty home"));
    disk.write_file(log_path(session), bytes);
    disk
}

/// A session's log with lists of one to three records.
fn recorded() -> (SessionId, Vec<u8>) {
    let home = Home::with_sessions(1, 2);
    for (marker, size) in [(10, 1), (20, 3), (30, 2)] {
        let records = (0..size).map(|n| marked(marker + n, 5, None)).collect();
        home.store.append(Append::durable(home.sessions[0], records)).expect("recorded");
    }
    let bytes = home.disk.read_file(log_path(home.sessions[0])).expect("a log");
    (home.sessions[0], bytes)
}

fn last_line(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == b'\n').rev().nth(1).expect("a last line").to_vec()
}

/// Returns the ends of whole lists, with the number of records up to each.
fn list_ends(bytes: &[u8]) -> Vec<(usize, u64)> {
    let mut ends = vec![(0, 0)];
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        let line = Line::parse(line.strip_suffix(b"\n").unwrap_or(line)).expect("a record");
        if !line.more {
            ends.push((at, line.seq));
        }
    }
    ends
}

// I3, I12, I14
#[test]
fn a_log_cut_at_every_byte_is_read_up_to_its_last_whole_list() {
    let (session, bytes) = recorded();
    let ends = list_ends(&bytes);
    for cut in 0..=bytes.len() {
        let disk = only_log(session, &bytes[..cut]);
        let clock = Arc::new(SimClock::default());
        let (end, seq) = *ends.iter().rev().find(|(end, _)| *end <= cut).expect("the beginning is one");
        let store = open(&disk, &clock).expect("opens");
        let loaded = store.load(session, Want::Everything).expect("loads");
        assert_eq!(loaded.state.last_seq, seq, "cut at {cut}");
        assert_eq!(
            loaded.torn.map(|torn| (torn.offset, torn.len)),
            (cut > end).then_some((end as u64, (cut - end) as u64))
        );
        assert_eq!(loaded.damage, None, "cut at {cut}");
        if seq == 0 {
            continue;
        }
        // Opened for writing it is cut, says so once, and is the same the next time.
        let current = store.open_session(session).expect("opens for writing");
        let announced = u64::from(cut > end);
        assert_eq!(current.state.last_seq, seq + announced, "cut at {cut}");
        if cut > end {
            let line = last_line(&disk.read_file(log_path(session)).expect("a log"));
            let Ok(Event::LogRepaired(repair)) = Line::parse(&line).expect("a record").event() else {
                panic!("it is announced")
            };
            let what = if bytes[end..cut].contains(&b'\n') { "half_list" } else { "torn_tail" };
            let found = (&*repair.what, repair.offset, repair.cut_bytes);
            assert_eq!(found, (what, end as u64, (cut - end) as u64), "cut at {cut}");
            assert_eq!(repair.kept.is_some(), what == "half_list", "cut at {cut}");
        }
        drop(store);
        let again = open(&disk, &clock).expect("opens again").open_session(session).expect("again");
        assert_eq!(again.state, current.state, "twice is once");
        let kept = disk.read_file(log_path(session)).expect("a log");
        assert!(kept.starts_with(&bytes[..end]), "what was whole is untouched");
    }
}

// I12: bytes behind the last good record are cut by the rule, but they may have been a record once.
#[test]
fn what_is_cut_from_a_log_is_kept_if_it_was_ever_a_whole_line() {
    let (session, bytes) = recorded();
    let last = bytes.len() - last_line(&bytes).len() - 1;
    let mut changed = bytes.clone();
    changed[last + 20] ^= 1;
    let disk = only_log(session, &changed);
    let store = open(&disk, &Arc::default()).expect("opens");
    store.open_session(session).expect("opens for writing");
    let line = last_line(&disk.read_file(log_path(session)).expect("a log"));
    let Ok(Event::LogRepaired(repair)) = Line::parse(&line).expect("a record").event() else {
        panic!("it is announced")
    };
    let kept = repair.kept.expect("a reference");
    let kept: rekindle_store::blobs::BlobRef = serde_json::from_str(kept.as_json()).expect("to a blob");
    // The whole list that the record belonged to goes.
    let cut = &changed[repair.offset as usize..];
    assert!(cut.len() >= changed.len() - last);
    assert_eq!(store.blobs().get(&kept.blob).expect("the blob"), cut);
}

// I12
#[test]
fn a_changed_letter_is_noticed_though_the_line_is_still_json() {
    let (session, bytes) = recorded();
    let last_line = bytes.len() - last_line(&bytes).len() - 1;
    let letters = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'x').map(|(at, _)| at);
    for at in letters {
        let mut changed = bytes.clone();
        changed[at] = b'y';
        let store = open(&only_log(session, &changed), &Arc::default()).expect("opens");
        let loaded = store.load(session, Want::Status).expect("loads");
        assert_eq!(loaded.damage.is_some(), at < last_line, "byte {at}");
        assert_eq!(loaded.torn.is_some(), at >= last_line, "byte {at}");
    }
}

// I3, I14
#[test]
fn of_a_list_whose_end_the_write_ahead_log_lost_all_or_nothing_is_kept() {
    let home = Home::with_sessions(1, 2);
    let session = home.sessions[0];
    let paths = home.disk.paths();
    let wal = paths.iter().find(|path| path.to_string_lossy().ends_with(".wal")).expect("a segment");
    let (segment, before) = (home.disk.read_file(wal), home.disk.read_file(log_path(session)));
    let (segment, before) = (segment.expect("a segment"), before.expect("a log").len());
    let list = (10..13).map(|marker| marked(marker, 5, None)).collect();
    home.store.append(Append::quick(session, list)).expect("the kernel has it");
    let whole = home.disk.read_file(log_path(session)).expect("a log").len();
    for cut in before..=whole {
        let disk = home.disk.fork();
        disk.write_file(wal, &segment);
        disk.truncate_file(log_path(session), cut as u64);
        let store = open(&disk, &home.clock).expect("opens");
        let expected: &[u64] = if cut == whole { &[0, 1, 10, 11, 12] } else { &[0, 1] };
        assert_eq!(markers(&disk, session), expected, "cut at {cut}");
        let loaded = store.load(session, Want::Status).expect("loads");
        assert!(loaded.torn.is_none() && loaded.damage.is_none(), "cut at {cut}");
    }
}

// I10, I12
#[test]
fn a_flipped_byte_anywhere_isolates_that_session_and_changes_nothing() {
    let (session, bytes) = recorded();
    let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    for at in (0..bytes.len()).step_by(7) {
        let disk = only_log(session, &bytes);
        disk.flip_byte(log_path(session), at as u64);
        let before = disk.read_file(log_path(session));
        let home = Home {
            sessions: vec![session],
            store: open(&disk, &Arc::default()).expect("opens"),
            disk,
            clock: Arc::default(),
        };
        let loaded = home.store.load(session, Want::Status).expect("loads");
        if at >= last_line {
            assert!(loaded.damage.is_some() || loaded.torn.is_some(), "byte {at} is noticed");
            continue;
        }
        let damage = loaded.damage.unwrap_or_else(|| panic!("byte {at} is damage, not an end"));
        assert!(damage.offset as usize <= at, "byte {at} is found at {}", damage.offset);
        let lines = before.as_deref().unwrap_or_default().split(|byte| *byte == b'\n').count();
        assert!(loaded.state.last_seq < lines as u64, "the prefix is served");
        home.store.open_session(session).expect("it can be read");
        let error = home.append(100).expect_err("but not written");
        assert!(matches!(error, AppendError::Damaged { .. }), "{error}");
        assert_eq!(home.disk.read_file(log_path(session)), before, "the file is kept as it is");
        let other = SessionId::mint(77, 77);
        home.store.create(other).expect("others go on");
        home.store.append(Append::durable(other, vec![created()])).expect("others go on");
    }
}

// I12
#[test]
fn damage_above_the_checkpoint_is_healed_from_the_write_ahead_log() {
    let home = Home::with_sessions(1, 6);
    let session = home.sessions[0];
    let good = home.disk.read_file(log_path(session)).expect("a log");
    let disk = home.disk.fork();
    disk.flip_byte(log_path(session), good.len() as u64 / 2);
    let home = home.reopen(disk);
    let healed = home
        .store
        .recovered()
        .streams
        .iter()
        .any(|(id, done)| *id == session && matches!(done, Completion::Repaired { healed: true, .. }));
    assert!(healed, "{:?}", home.store.recovered());
    assert_eq!(home.disk.read_file(log_path(session)), Some(good));
    home.store.open_session(session).expect("fine");
    let log = home.disk.read_file(log_path(session)).expect("a log");
    let last = last_line(&log);
    let last = Line::parse(&last).expect("a record");
    assert!(
        matches!(last.event(), Ok(Event::LogRepaired(repair)) if repair.what == "healed"),
        "it is announced"
    );
}

// I1, I2
#[test]
fn a_flipped_byte_in_the_write_ahead_log_loses_nothing_that_the_logs_have() {
    let home = Home::with_sessions(3, 4);
    let wal = home
        .disk
        .paths()
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".wal"))
        .expect("a segment");
    let len = home.disk.read_file(&wal).expect("a segment").len() as u64;
    for at in (0..len).step_by(13) {
        let disk = home.disk.fork();
        disk.flip_byte(&wal, at);
        let store = open(&disk, &home.clock).expect("opens");
        for session in &home.sessions {
            assert_eq!(markers(&disk, *session), [0, 1, 2, 3], "byte {at}");
            assert_eq!(store.load(*session, Want::Status).expect("loads").damage, None, "byte {at}");
        }
        if !store.recovered().wal_damage.is_empty() {
            let kept = disk.paths().iter().any(|path| path.to_string_lossy().ends_with(".wal.damaged"));
            assert!(kept, "a damaged segment is kept (byte {at})");
        }
    }
}

// I10, I12
#[test]
fn a_flipped_byte_in_the_write_ahead_log_costs_no_more_than_its_record() {
    let home = Home::with_sessions(3, 4);
    let paths = home.disk.paths();
    let wal = paths.iter().find(|path| path.to_string_lossy().ends_with(".wal")).expect("a segment");
    let bytes = home.disk.read_file(wal).expect("a segment");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("frames");
    let last_line = home.disk.read_file(log_path(home.sessions[2])).map(|log| last_line(&log).len());
    // Every frame was on disk before the next was written; only the last has nothing behind it to prove it.
    let proven = end - last_line.expect("a log") - 100;
    for at in (0..proven).step_by(13) {
        let disk = home.disk.fork();
        for session in &home.sessions {
            disk.remove(log_path(*session));
        }
        disk.flip_byte(wal, at as u64);
        let store = open(&disk, &home.clock).expect("opens");
        assert_eq!(store.recovered().wal_damage.len(), 1, "byte {at}");
        let whole = home.sessions.iter().filter(|session| markers(&disk, **session) == [0, 1, 2, 3]);
        assert!(whole.count() >= 2, "byte {at}");
    }
}

// I12
#[test]
fn a_torn_end_that_the_write_ahead_log_has_is_put_right_and_no_damage() {
    let home = Home::with_sessions(1, 3);
    let session = home.sessions[0];
    let good = home.disk.read_file(log_path(session)).expect("a log");
    let mut torn = good.clone();
    torn[good.len() - 20..].fill(0);
    let disk = home.disk.fork();
    disk.write_file(log_path(session), &torn);
    let home = home.reopen(disk);
    let (offset, cut_bytes) = (good.len() as u64 - 20, 20);
    let expected = Completion::Repaired { offset, cut_bytes, refilled: 1, healed: false };
    assert_eq!(home.store.recovered().streams, [(session.into(), expected)]);
    assert_eq!(home.disk.read_file(log_path(session)), Some(good));
}

// I12
#[test]
fn records_missing_from_log_and_write_ahead_log_are_announced_for_good() {
    let home = Home::with_sessions(2, 5);
    home.store.committer().checkpoint().expect("fine");
    let (lost, other) = (home.sessions[0], home.sessions[1]);
    let disk = home.disk.fork();
    disk.truncate_file(log_path(lost), 500);
    let home = home.reopen(disk);
    for _ in 0..2 {
        let loaded = home.store.load(lost, Want::Status).expect("the prefix is served");
        assert!(loaded.damage.is_some_and(|damage| damage.detail.contains("500")), "it is said where");
        assert_eq!(home.store.load(other, Want::Status).expect("loads").damage, None);
    }
    let home = home.reopen_same();
    assert!(
        home.store.load(lost, Want::Status).expect("loads").damage.is_some(),
        "and still after a restart"
    );
}

// I12
#[test]
fn a_flipped_byte_in_the_last_record_of_a_checkpointed_log_is_damage_not_an_end() {
    let home = Home::with_sessions(2, 4);
    home.store.committer().checkpoint().expect("fine");
    let session = home.sessions[0];
    let len = home.disk.read_file(log_path(session)).expect("a log").len() as u64;
    for back in (30..120).step_by(9) {
        let disk = home.disk.fork();
        disk.flip_byte(log_path(session), len - back);
        let store = open(&disk, &home.clock).expect("opens");
        let damaged = store
            .recovered()
            .streams
            .iter()
            .any(|(id, done)| *id == session && matches!(done, Completion::Damaged(_)));
        assert!(damaged, "{back} bytes before the end");
        assert_eq!(disk.read_file(log_path(session)).expect("kept").len() as u64, len, "nothing is cut");
        store.open_session(session).expect("it can be read");
        let append = Append::durable(session, vec![marked(1, 1, None)]);
        assert!(matches!(store.append(append), Err(AppendError::Damaged { .. })));
    }
}

// I12
#[test]
fn another_last_record_in_a_checkpointed_log_is_damage_however_good_it_looks() {
    let with = |markers: &[u64]| {
        let home = Home::with_sessions(1, 1);
        for marker in markers {
            home.append(*marker).expect("recorded");
        }
        home.store.committer().checkpoint().expect("fine");
        let log = home.disk.read_file(log_path(home.sessions[0])).expect("a log");
        (home, log)
    };
    let ((home, log), (_, other)) = (with(&[10, 11]), with(&[20, 21]));
    let letter = log.iter().rposition(|byte| *byte == b'x').expect("a letter");
    let changed = [&log[..letter], b"y", &log[letter + 1..]].concat();
    assert_eq!(other.len(), log.len());
    for (what, bytes) in [("a changed letter", changed), ("another history", other)] {
        let disk = home.disk.fork();
        disk.write_file(log_path(home.sessions[0]), &bytes);
        let store = open(&disk, &home.clock).expect("opens");
        let sessions = &store.recovered().streams;
        assert!(matches!(sessions[..], [(_, Completion::Damaged(_))]), "{what}: {sessions:?}");
    }
}

// I12
#[test]
fn a_damaged_checkpoint_is_damage_not_an_end() {
    let home = Home::with_sessions(2, 2);
    home.store.committer().checkpoint().expect("fine");
    let wal = home
        .disk
        .paths()
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".wal"))
        .expect("a segment");
    let disk = home.disk.fork();
    disk.flip_byte(&wal, 70);
    let store = open(&disk, &home.clock).expect("opens");
    assert_eq!(store.recovered().wal_damage.len(), 1);
}

// I12
#[test]
fn a_session_whose_log_is_gone_is_still_listed() {
    let home = Home::with_sessions(2, 2);
    home.store.committer().checkpoint().expect("fine");
    let disk = home.disk.fork();
    disk.remove(log_path(home.sessions[0]));
    let home = home.reopen(disk).reopen_same();
    let mut listed = Vec::new();
    home.store
        .survey(|id, loaded| listed.push((id, loaded.expect("listed").damage.is_some())))
        .expect("listed");
    listed.sort_unstable();
    assert_eq!(listed, [(home.sessions[0], true), (home.sessions[1], false)]);
}

#[test]
fn a_log_shorter_than_its_snapshot_or_with_another_record_there_is_damage() {
    for tamper in [0, 1] {
        let home = Home::with_sessions(1, 5);
        let session = home.sessions[0];
        home.store.snapshot(session).expect("a snapshot");
        let log = home.disk.read_file(log_path(session)).expect("a log");
        let snapshot = home.disk.read_file(format!("/home/sessions/{session}.json")).expect("a snapshot");
        let (end, _) = list_ends(&log)[3];
        let disk = if tamper == 0 {
            only_log(session, &log[..end])
        } else {
            let other = Home::with_sessions(1, 9);
            only_log(session, &other.disk.read_file(log_path(session)).expect("a log"))
        };
        let text =
            String::from_utf8(snapshot).expect("text").replace("\"last_hash\":\"", "\"last_hash\":\"0");
        let text = if tamper == 0 {
            text.replace("\"last_hash\":\"0", "\"last_hash\":\"")
        } else {
            shorten_hash(&text)
        };
        disk.write_file(format!("/home/sessions/{session}.json"), text.as_bytes());
        let store = open(&disk, &Arc::default()).expect("opens");
        let loaded = store.load(session, Want::Status).expect("the log is served");
        assert!(loaded.damage.is_some_and(|damage| damage.detail.contains("snapshot")), "case {tamper}");
    }
}

/// Makes the hash in a snapshot another one of the right length.
fn shorten_hash(text: &str) -> String {
    let at = text.find("\"last_hash\":\"0").expect("a hash") + "\"last_hash\":\"0".len();
    let mut text = text.to_owned();
    text.remove(at + 15);
    text
}

#[test]
fn missing_repeated_and_reordered_records_are_damage() {
    let (session, bytes) = recorded();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let without: Vec<u8> = [&lines[..2], &lines[3..]].concat().concat();
    let twice: Vec<u8> = [&lines[..3], &lines[2..]].concat().concat();
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    let again: Vec<u8> = [&lines[..3], &lines[2..3]].concat().concat();
    let cases = [("missing", without), ("repeated", twice), ("swapped", swapped.concat()), ("again", again)];
    for (what, bytes) in cases {
        let store = open(&only_log(session, &bytes), &Arc::default()).expect("opens");
        let loaded = store.load(session, Want::Status).expect("loads");
        assert!(loaded.damage.is_some(), "{what}");
        assert!(loaded.state.last_seq <= 3, "{what}: the prefix is served");
    }
}

#[test]
fn legacy_lines_may_stand_only_before_the_first_hash() {
    let legacy = concat!(
        r#"{"seq":145,"ts":"2026-02-21T10:01:10Z","kind":"message.user","message_id":"msg_u1","content":"run tests"}"#,
        "\n",
        r#"{"seq":146,"ts":"2026-02-21T10:01:11Z","kind":"run.started","run_id":"run_9f5","boot_id":"boot_1"}"#,
        "\n",
    );
    let session: SessionId = "sess_123".parse().expect("an id");
    let gap = open(&only_log(session, legacy.replace("146", "147").as_bytes()), &Arc::default());
    let loaded = gap.expect("opens").load(session, Want::Status).expect("loads");
    assert!(loaded.damage.is_some(), "numbers are all that such lines have");
    let disk = only_log(session, legacy.as_bytes());
    let clock = Arc::new(SimClock::default());
    let store = open(&disk, &clock).expect("opens");
    assert_eq!(store.open_session(session).expect("opens").state.last_seq, 146);
    store.append(Append::durable(session, vec![marked(1, 5, None)])).expect("new records follow");
    drop(store);
    let store = open(&disk, &clock).expect("opens");
    let loaded = store.load(session, Want::Status).expect("loads");
    assert_eq!((loaded.state.last_seq, loaded.damage), (147, None));
    drop(store);
    let mut bytes = disk.read_file(log_path(session)).expect("a log");
    bytes.extend_from_slice(legacy.replace("145", "148").replace("146", "149").as_bytes());
    let store = open(&only_log(session, &bytes), &clock).expect("opens");
    let loaded = store.load(session, Want::Status).expect("loads");
    assert!(loaded.damage.is_some_and(|damage| damage.detail.contains("no hash")));
}

// I12
#[test]
fn damage_that_a_snapshot_has_passed_is_found_before_half_a_list_too() {
    let home = Home::with_sessions(1, 3);
    let session = home.sessions[0];
    home.store.snapshot(session).expect("a snapshot");
    let log = home.store.layout().log(session);
    let passed = home.disk.read_file(&log).expect("a log").len();
    let list = vec![marked(100, 20, None), marked(101, 20, None)];
    home.store.append(Append::durable(session, list)).expect("a list");
    let bytes = home.disk.read_file(&log).expect("a log");
    let half = passed + bytes[passed..].iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    for path in home.disk.paths().into_iter().filter(|path| path.starts_with("/home/wal")) {
        home.disk.remove(path);
    }
    let offline = || Offline::open(Arc::new(home.disk.clone()), "/home").expect("looking works");
    home.disk.write_file(&log, &bytes[..half]);
    let loaded = offline().load(session, Want::Everything).expect("it loads");
    assert!(loaded.damage.is_none() && loaded.torn.is_some_and(|torn| torn.half_list), "a list was cut");
    let mut rotten = bytes[..half].to_vec();
    let at = passed - 60;
    rotten[at] ^= 1;
    home.disk.write_file(&log, &rotten);
    let loaded = offline().load(session, Want::Everything).expect("it loads");
    assert!(loaded.damage.is_some(), "a record before the snapshot's place has rotted");
}
