//! The daemon's log: lines that programs can read, about which session each is, and nobody who waits for its reader.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};

use crate::lab::Lab;

/// Returns the lines about a session.
fn about<'a>(lines: &'a [Value], id: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["span"]["name"] == "session" && line["span"]["id"] == id)
}

#[test]
fn json_lines_parse_and_say_which_session_they_are_about() {
    let mut lab = Lab::without_daemon();
    lab.start_with(&[], &[("REKINDLE_LOG_FORMAT", "json")]);
    let ids = [lab.run("say one"), lab.run("say two")];
    ids.iter().for_each(|id| drop(lab.wait_end(id)));
    lab.post(&format!("/api/sessions/{}/close", ids[0]), &json!({}));
    lab.ask("DELETE", &format!("/api/sessions/{}", ids[0]), &json!(null));
    let log = lab.daemon_log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for id in &ids {
        assert!(about(&lines, id).any(|line| line["message"] == "next step"), "its worker's: {log}");
    }
    // What a session's own log tells is for those who look closely; a deletion is told nowhere else.
    for (path, method, level, status) in
        [("/api/sessions/{id}/close", "POST", "DEBUG", 202), ("/api/sessions/{id}", "DELETE", "INFO", 204)]
    {
        let is_it = |line: &&Value| {
            (&line["message"], &line["path"], &line["method"])
                == (&json!("request"), &json!(path), &json!(method))
        };
        let line = about(&lines, &ids[0]).find(is_it).unwrap_or_else(|| panic!("{method} {path}: {log}"));
        assert_eq!((&line["level"], &line["status"]), (&json!(level), &json!(status)), "{log}");
    }
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["target"].is_string()), "{log}");
}

#[test]
fn a_filter_picks_one_session_and_one_that_does_not_parse_is_told() {
    let mut lab = Lab::without_daemon();
    lab.start_with(&[], &[("REKINDLE_LOG", "inof")]);
    let id = lab.run("say one");
    lab.wait_end(&id);
    lab.leave();
    let log = lab.daemon_log();
    assert!(log.contains("REKINDLE_LOG is ignored") && log.contains("inof"), "{log}");
    assert!(log.contains("serving") && !log.contains("DEBUG"), "the usual counts: {log}");

    let one = format!("warn,[session{{id={id}}}]=debug");
    lab.start_with(&[], &[("REKINDLE_LOG", &one)]);
    let other = lab.run("say two");
    lab.wait_end(&other);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say more"}));
    lab.wait_end(&id);
    lab.leave();
    let more = lab.daemon_log().split_off(log.len());
    assert!(more.contains(&format!("session{{id={id}}}: next step")), "{more}");
    assert!(!more.contains(&other) && !more.contains("serving"), "{more}");
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let mut lab = Lab::without_daemon();
    let pipe = lab.path("daemon.log");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).expect("a pipe");
    // Someone has it open, and never reads.
    let flags = (OFlags::RDWR | OFlags::NONBLOCK).bits().cast_signed();
    let reader = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&pipe).expect("a pipe");
    lab.start();
    // Whoever wanted to read it would wait for ever.
    std::fs::remove_file(&pipe).expect("removed");
    let mut connection = lab.connect().expect("a daemon");
    // A pipe has room for 64 KiB, some hundred lines.
    for _ in 0..1000 {
        connection.ask("GET", "/api/version", "", "").expect("an answer");
    }
    drop(connection);
    let id = lab.run("say still here");
    assert_eq!(lab.wait_end(&id), "completed");
    lab.leave();
    drop(reader);
}
