//! What `rekindle log` prints.

use std::fs;
use std::io::Read;

use crate::support::{Home, code, stderr, stdout};

#[test]
fn json_is_the_file_line_for_line() {
    let home = Home::made();
    for session in home.sessions() {
        let file = fs::read_to_string(home.log_path(&session)).expect("the log");
        assert_eq!(home.ok(&["log", &session, "--json"]), file);
    }
}

#[test]
fn from_and_last_choose_records() {
    let home = Home::made();
    let session = home.sessions().remove(1);
    let file = fs::read_to_string(home.log_path(&session)).expect("the log");
    let lines: Vec<&str> = file.lines().collect();
    let shown = |options: &[&str]| home.ok(&[&["log", &session, "--json"], options].concat());
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(shown(&["--from", "5"]), joined(&lines[4..]));
    assert_eq!(shown(&["--last", "3"]), joined(&lines[lines.len() - 3..]));
    assert_eq!(shown(&["--last", "100000"]), file);
    assert_eq!(shown(&["--from", "4", "--last", "2"]), joined(&lines[lines.len() - 2..]));
    assert_eq!(shown(&["--from", "7", "--last", "100000"]), joined(&lines[6..]));
    assert_eq!(shown(&["--from", "100000"]), "");
    assert_eq!(shown(&["--last", "0"]), "");
    assert_eq!(shown(&["--from", "0"]), file);
}

#[test]
fn text_shows_messages_whole_and_the_rest_in_a_line_each() {
    let home = Home::made();
    let session = home.sessions().remove(0);
    let text = home.ok(&["log", &session]);
    for kind in ["session.created", "message.user", "run.started", "agent.launching", "message.agent"] {
        assert!(text.contains(kind), "{kind} is missing:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals");
    // The first session's long message is kept in a blob, and shown all the same.
    assert_eq!(text.matches("too long for the log, number 0").count(), 6000);
    let heads = text.lines().filter(|line| line.get(5..7) == Some("  ") && line.get(9..10) == Some(":"));
    assert_eq!(heads.count(), home.ok(&["log", &session, "--json"]).lines().count());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::made();
    let session = home.sessions().remove(0);
    for options in [&["--json"][..], &[]] {
        let mut child = home.spawn(&[&["log", &session], options].concat());
        let mut some = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut some).expect("some bytes");
        assert!(child.wait().expect("it ends").success());
    }
}

#[test]
fn a_torn_tail_is_left_out_and_told() {
    let home = Home::made();
    let session = home.sessions().remove(2);
    let whole = home.ok(&["log", &session, "--json"]);
    for kind in ["torn-tail", "half-list"] {
        let home = Home::made();
        home.ok(&["dev", "damage", kind, "--session", &session]);
        // The write-ahead log knows where this log ends; without it the log must speak for itself.
        for with_wal in [true, false] {
            if !with_wal {
                fs::remove_dir_all(home.path().join("wal")).expect("removed");
            }
            let output = home.run(&["log", &session, "--json"]);
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            assert_eq!(stdout(&output).lines().count(), whole.lines().count(), "{kind}");
            assert_eq!(stderr(&output).contains("an incomplete record"), !with_wal, "{kind}");
        }
    }
}
