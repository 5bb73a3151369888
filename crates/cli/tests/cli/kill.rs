//! A writer that is killed: what it was told is there, also where only the write-ahead log has it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::support::{Home, findings};

/// What a writer said was acknowledged: for each session the last record and its hash.
type Acknowledged = BTreeMap<String, (u64, String)>;

/// Runs a writer, kills it after so many acknowledgements, and returns those.
fn killed_after(home: &Home, count: usize, options: &[&str]) -> Acknowledged {
    let mut child = home.spawn(&[&["dev", "append", "--sessions", "6"], options].concat());
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut last = Acknowledged::new();
    let mut note = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        // The last line may be cut by the kill.
        if let ["ack", session, _, seq, hash, "disk" | "process"] = words.as_slice() {
            let seq = seq.parse().expect("a number");
            last.insert((*session).to_owned(), (seq, (*hash).to_owned()));
        }
    };
    for line in lines.by_ref().take(count) {
        note(&line.expect("a line"));
    }
    child.kill().expect("killed");
    // What it had said before it died counts too.
    lines.map_while(Result::ok).for_each(|line| note(&line));
    child.wait().expect("it is gone");
    last
}

/// Checks that every acknowledged record is there, as it was acknowledged.
fn assert_kept(home: &Home, acknowledged: &Acknowledged) {
    for (session, (seq, hash)) in acknowledged {
        let log = home.ok(&["log", session, "--json"]);
        let records: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        let numbers: Vec<u64> = records.iter().filter_map(|record| record["seq"].as_u64()).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "gaps in {session}");
        let record = &records[*seq as usize - 1];
        assert_eq!(record["h"], hash.as_str(), "record {seq} of {session}");
    }
}

// I1: acknowledged is durable: it survives the death of its process.
#[test]
fn what_a_killed_writer_was_told_is_there_again_and_again() {
    let home = Home::empty();
    for persist in ["mixed", "process", "disk"] {
        let acknowledged = killed_after(&home, 400, &["--persist", persist]);
        assert_eq!(acknowledged.len(), 6);
        let before = home.picture();
        assert_kept(&home, &acknowledged);
        let report = home.json(&["doctor"]);
        assert_eq!((&report["errors"], &report["warnings"]), (&0.into(), &0.into()), "{report}");
        before.assert_same(&home.picture(), "looking");
        // The next owner completes the logs and finds the same.
        home.ok(&["dev", "hold"]);
        assert_kept(&home, &acknowledged);
        assert_eq!(home.json(&["doctor"])["errors"], 0);
    }
}

// I2: the append is the commit point: a log that only the write-ahead log has is shown whole.
#[test]
fn a_session_that_only_the_write_ahead_log_has_is_shown() {
    let home = Home::empty();
    let acknowledged = killed_after(&home, 100, &["--persist", "disk"]);
    let (session, (seq, _)) = acknowledged.iter().next().expect("a session");
    let whole = home.ok(&["log", session, "--json"]);
    // A power cut may take the log and its name: neither was synced yet.
    fs::remove_file(home.log_path(session)).expect("removed");
    let before = home.picture();
    assert_eq!(home.ok(&["log", session, "--json"]), whole);
    assert_eq!(home.json(&["status", session])["evidence"]["last_seq"], whole.lines().count());
    assert!(whole.lines().count() as u64 >= *seq);
    assert_kept(&home, &acknowledged);
    let report = home.json(&["doctor"]);
    assert_eq!(report["errors"], 0, "{report}");
    let refill = findings(&report, "log_refill");
    assert!(refill.iter().any(|finding| finding["session"] == session.as_str()), "{report}");
    before.assert_same(&home.picture(), "looking");
}

// I12: what is damaged in the write-ahead log of a killed writer is announced, with its segment and byte.
#[test]
fn damage_in_a_write_ahead_log_that_is_needed_is_found() {
    let home = Home::empty();
    killed_after(&home, 300, &["--persist", "disk"]);
    let done = home.json(&["dev", "damage", "wal-flip", "--seed", "3"]);
    let report = home.json(&["doctor"]);
    let found = findings(&report, "wal_damaged");
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!((&found[0]["path"], &found[0]["at"]["byte"]), (&done["path"], &done["byte"]));
}

#[test]
fn a_write_ahead_log_that_ends_in_mid_frame_is_a_survived_crash() {
    let home = Home::empty();
    killed_after(&home, 300, &["--persist", "disk"]);
    let done = home.json(&["dev", "damage", "wal-tear"]);
    let report = home.json(&["doctor"]);
    let found = findings(&report, "wal_torn");
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!((&found[0]["path"], &found[0]["at"]["byte"]), (&done["path"], &done["byte"]));
    assert_eq!(report["errors"], 0, "{report}");
}

#[test]
fn a_home_that_is_being_written_to_is_not_taken_for_damaged() {
    let home = Home::empty();
    let mut child = home.spawn(&["dev", "append", "--sessions", "6"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.next().is_some_and(|line| line.is_ok()));
    // The pipe must not fill up, or the writer would stand still.
    let drain = std::thread::spawn(move || lines.map_while(Result::ok).count());
    for _ in 0..10 {
        let report = home.json(&["doctor"]);
        assert_eq!((&report["errors"], &report["warnings"]), (&0.into(), &0.into()), "{report}");
        assert_eq!(findings(&report, "home_in_use").len(), 1);
        for session in home.sessions() {
            home.ok(&["log", &session, "--last", "5"]);
            home.ok(&["status", &session]);
        }
    }
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    assert!(drain.join().expect("no panic") > 0);
}
