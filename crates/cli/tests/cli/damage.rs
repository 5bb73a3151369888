//! Every kind of damage is found and named, and looking at it writes nothing.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::support::{Home, code, findings, stderr, stdout};

/// A kind of damage, what `doctor` calls it, and whether it counts as an error.
struct Case {
    kind: &'static str,
    code: &'static str,
    exit: i32,
    /// The finding names exactly the path that was damaged.
    path: bool,
}

const fn case(kind: &'static str, code: &'static str, exit: i32) -> Case {
    Case { kind, code, exit, path: true }
}

const CASES: &[Case] = &[
    case("torn-tail", "log_torn", 0),
    case("flipped-byte", "log_damaged", 1),
    case("missing-record", "log_damaged", 1),
    case("duplicate-record", "log_damaged", 1),
    case("half-list", "log_half_list", 0),
    case("cut-below-snapshot", "log_shorter_than_snapshot", 1),
    case("delete-caches", "snapshot_missing", 0),
    Case { path: false, ..case("delete-caches", "index_missing", 0) },
    case("corrupt-snapshot", "snapshot_unreadable", 0),
    case("newer-snapshot", "snapshot_newer", 1),
    case("wal-flip", "wal_damaged", 1),
    case("wal-tear", "wal_damaged", 1),
    Case { path: false, ..case("rubbish-files", "foreign_name", 0) },
    Case { path: false, ..case("rubbish-files", "temporary_file", 0) },
    case("bad-modes", "wrong_mode", 0),
    case("missing-blob", "blob_missing", 1),
    case("stale-tokens", "tokens_differ", 0),
];

// I12: nothing is lost silently; every kind of damage is announced with its place.
// I10: one bad file never stops the rest: every session is looked at all the same.
#[test]
fn every_kind_of_damage_is_found_with_its_place_and_looking_writes_nothing() {
    for Case { kind, code: expected, exit, path } in CASES {
        let home = Home::made();
        let done = home.json(&["dev", "damage", kind]);
        let before = home.picture();
        let output = home.run(&["doctor", "--json"]);
        assert_eq!(code(&output), *exit, "{kind}: {}{}", stdout(&output), stderr(&output));
        let report: Value = serde_json::from_str(&stdout(&output)).expect("a report");
        assert_eq!(report["counts"]["sessions"], 12, "{kind}");
        let found = findings(&report, expected);
        assert!(!found.is_empty(), "{kind} is not found as {expected}: {report}");
        let place = |finding: &&&Value| {
            let at = &finding["at"];
            (!path || finding["path"] == done["path"])
                && (done["byte"].is_null() || at["byte"].is_null() || at["byte"] == done["byte"])
                && (done["line"].is_null() || at["line"].is_null() || at["line"] == done["line"])
        };
        assert!(found.iter().any(|finding| place(&finding)), "{kind}: {done} is not where {found:?}");
        for finding in &found {
            assert!(finding["what"].as_str().is_some_and(|what| what.ends_with('.')), "{finding}");
            assert!(finding["remedy"].as_str().is_some_and(|remedy| remedy.len() > 10), "{finding}");
        }
        let text = home.run(&["doctor"]);
        // Of a healthy home nobody need read what the next daemon makes anew.
        let is_told = *expected != "index_missing";
        assert_eq!(stdout(&text).contains(expected), is_told, "{kind}: {}", stdout(&text));
        for session in home.sessions() {
            home.run(&["log", &session]);
            home.run(&["status", &session]);
        }
        before.assert_same(&home.picture(), kind);
    }
}

// I12: damage says at which byte and line; the good part before it is still shown.
#[test]
fn a_damaged_log_is_shown_up_to_the_damage_and_said_to_be_damaged() {
    let home = Home::made();
    let done = home.json(&["dev", "damage", "missing-record"]);
    let path = done["path"].as_str().expect("a path");
    let session = home.sessions().into_iter().find(|id| path.contains(id)).expect("one of ours");
    let output = home.run(&["log", &session, "--json"]);
    assert_eq!(code(&output), 1);
    let line = done["line"].as_u64().expect("a line");
    assert_eq!(stdout(&output).lines().count() as u64, line - 1);
    let error: Value = serde_json::from_str(&stderr(&output)).expect("an error object");
    assert_eq!(error["error"]["code"], "session_damaged");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.contains(&format!("at byte {}", done["byte"])), "{message}");
    // What to do about it names the command and the session, for people and for programs.
    let command = format!("doctor --repair --set-aside {session}");
    let report = home.json(&["doctor"]);
    let remedy = findings(&report, "log_damaged")[0]["remedy"].as_str().expect("a remedy");
    assert!(remedy.contains(&command), "{remedy}");
    let words = stdout(&home.run(&["doctor"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&command), "{words}");
}

// I10: one newer snapshot isolates its session only.
#[test]
fn one_newer_snapshot_isolates_that_session_only() {
    let home = Home::made();
    let sessions = home.sessions();
    let bad = &sessions[4];
    home.ok(&["dev", "damage", "newer-snapshot", "--session", bad]);
    for session in &sessions {
        let output = home.run(&["status", session]);
        assert_eq!(code(&output), i32::from(session == bad), "{session}: {}", stderr(&output));
        // The log is as readable as before.
        assert_eq!(code(&home.run(&["log", session])), 0, "{session}");
    }
    let report = home.json(&["doctor"]);
    assert_eq!(report["errors"], 1);
    assert_eq!(findings(&report, "snapshot_newer")[0]["session"], bad.as_str());
    // A process that opens the home works with the others and leaves the file alone.
    let snapshot = home.path().join("sessions").join(format!("{bad}.json"));
    let before = std::fs::read(&snapshot).expect("the snapshot");
    home.ok(&["dev", "append", "--sessions", "12", "--records", "200"]);
    assert_eq!(std::fs::read(&snapshot).expect("the snapshot"), before);
}

// I2: snapshots, token indexes and the list cache are caches: without them everything is known as before.
#[test]
fn without_caches_every_status_and_log_is_the_same() {
    let home = Home::made();
    let all = || -> Vec<(Value, String)> {
        let look = |id: &String| (home.json(&["status", id]), home.ok(&["log", id, "--json"]));
        home.sessions().iter().map(look).collect()
    };
    let before = all();
    home.ok(&["dev", "damage", "delete-caches"]);
    assert!(before == all(), "something is known from caches alone");
}

// I12: a last record that was on disk for sure and is not valid any more is damage, not a torn end.
#[test]
fn damage_in_the_last_record_is_not_taken_for_a_torn_end() {
    let home = Home::made();
    home.ok(&["dev", "damage", "delete-caches"]);
    let session = home.sessions().remove(1);
    let mut log = fs::read(home.log_path(&session)).expect("the log");
    let last = log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("two lines") + 1;
    log[last + 30] ^= 1;
    fs::write(home.log_path(&session), &log).expect("written");
    let report = home.json(&["doctor"]);
    let found = findings(&report, "log_damaged");
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!(found[0]["at"]["byte"], last);
}

// I10: what is not a file, or not a directory, is a finding and stops nothing.
#[test]
fn things_of_the_wrong_type_stop_nothing() {
    let home = Home::made();
    let (sessions, first) = (home.path().join("sessions"), home.sessions().remove(0));
    fs::create_dir(sessions.join("sess_dir.messages.jsonl")).expect("made");
    symlink("/etc/passwd", sessions.join("sess_link.messages.jsonl")).expect("linked");
    let fifo = sessions.join("sess_fifo.messages.jsonl");
    let made = std::process::Command::new("mkfifo").arg(fifo).status().expect("mkfifo runs");
    assert!(made.success());
    fs::remove_file(sessions.join(format!("{first}.json"))).expect("removed");
    fs::create_dir(sessions.join(format!("{first}.json"))).expect("made");
    fs::write(sessions.join("evil\u{1b}[31m"), "").expect("written");
    let report = home.json(&["doctor"]);
    let unreadable: Vec<&Value> =
        findings(&report, "log_unreadable").iter().map(|finding| &finding["session"]).collect();
    assert_eq!(unreadable, ["sess_dir", "sess_fifo", "sess_link"]);
    assert_eq!(findings(&report, "snapshot_unreadable").len(), 1);
    assert_eq!(report["counts"]["sessions"], 15);
    let text = stdout(&home.run(&["doctor"]));
    assert!(text.contains("evil") && !text.contains('\u{1b}'), "{text}");
    fs::remove_dir_all(home.path().join("wal")).expect("removed");
    fs::write(home.path().join("wal"), "").expect("written");
    let report = home.json(&["doctor"]);
    assert_eq!(findings(&report, "wal_unreadable").len(), 1);
    assert_eq!(report["counts"]["sessions"], 15);
}

// A line of two gibibytes, read by a process that may have one: nobody holds more of a line than the limit.
#[test]
fn a_line_larger_than_memory_is_named_and_not_held() {
    let home = Home::made();
    let session = home.sessions().remove(0);
    let path = home.log_path(&session);
    let log = fs::OpenOptions::new().write(true).open(&path).expect("a log");
    let len = log.metadata().expect("a log").len();
    // A hole takes no room on the disk.
    log.set_len(len + (2 << 30)).expect("grown");
    std::os::unix::fs::FileExt::write_all_at(&log, b"\n", len + (2 << 30)).expect("ended");
    for arguments in [&["doctor"][..], &["status", &session], &["log", &session, "--last", "1"]] {
        let output = std::process::Command::new("sh")
            .args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rekindle"), "--home"])
            .arg(home.path())
            .args(arguments)
            .output()
            .expect("a shell");
        let said = stdout(&output) + &stderr(&output);
        assert!([0, 1].contains(&code(&output)), "{arguments:?} ended by itself: {said}");
        assert!(!said.is_empty(), "{arguments:?}");
    }
}

#[test]
fn several_kinds_of_damage_are_all_found() {
    let home = Home::made();
    let sessions = home.sessions();
    for (kind, session) in
        ["flipped-byte", "missing-record", "corrupt-snapshot", "torn-tail"].iter().zip(&sessions)
    {
        home.ok(&["dev", "damage", kind, "--session", session]);
    }
    for kind in ["rubbish-files", "missing-blob", "bad-modes"] {
        home.ok(&["dev", "damage", kind]);
    }
    let report = home.json(&["doctor"]);
    for code in
        ["log_damaged", "snapshot_unreadable", "log_torn", "foreign_name", "blob_missing", "wrong_mode"]
    {
        assert!(!findings(&report, code).is_empty(), "{code} is missing: {report}");
    }
    let severities: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| finding["severity"].as_str().expect("a severity"))
        .collect();
    let rank = |severity: &str| ["error", "warning", "note"].iter().position(|known| *known == severity);
    assert!(severities.is_sorted_by_key(|severity| rank(severity)), "worst first: {severities:?}");
}
