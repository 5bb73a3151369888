//! Homes as a whole: none, a fresh one, a newer one, a copied one, one in use, and permissions.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rekindle_testkit::made::dev_program;
use serde_json::Value;

use crate::support::{BINARY, Home, Picture, code, findings, stderr, stdout};

#[test]
fn a_fresh_home_is_healthy() {
    let home = Home::made();
    let before = home.picture();
    let output = home.run(&["doctor"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    let text = stdout(&output);
    assert!(
        text.lines().last().is_some_and(|last| last.contains("12 sessions, ") && last.contains(": healthy"))
    );
    assert!(!text.contains('\x1b'), "colours are for terminals");
    assert!(output.stderr.is_empty(), "progress is for terminals");
    before.assert_same(&home.picture(), "doctor");
    let report = home.json(&["doctor"]);
    assert_eq!(
        (&report["healthy"], &report["errors"], &report["warnings"]),
        (&true.into(), &0.into(), &0.into())
    );
}

#[test]
fn a_home_without_sessions_is_healthy() {
    let home = Home::empty();
    home.ok(&["dev", "hold"]);
    let report = home.json(&["doctor"]);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    assert_eq!(report["counts"]["sessions"], 0);
}

#[test]
fn no_home_is_said_so_and_none_is_made() {
    let home = Home::empty();
    for command in [&["doctor"][..], &["log", "sess_1"], &["status", "sess_1"]] {
        let output = home.run(command);
        assert_eq!(code(&output), 2);
        let text = stderr(&output);
        assert!(text.contains("there is no Rekindle home at") && text.contains("hint: "), "{text}");
    }
    let output = home.run(&["doctor", "--json"]);
    let error: Value = serde_json::from_str(&stderr(&output)).expect("an error object");
    assert_eq!(error["error"]["code"], "home_missing");
    assert!(error["error"]["hint"].is_string() && output.stdout.is_empty());
    assert!(!home.path().exists());
}

#[test]
fn a_home_that_cannot_be_is_not_taken_for_an_empty_one() {
    let home = Home::empty();
    let far = home.path().join("far/away");
    for place in [std::path::Path::new("/proc/x"), &far] {
        for command in ["ps", "waits"] {
            let output = Command::new(BINARY).args([command, "--home"]).arg(place).output().expect("it runs");
            assert_eq!((code(&output), stdout(&output)), (1, String::new()), "{command} {place:?}");
            let said = format!("and none can be made in {}", place.parent().expect("one above").display());
            assert!(stderr(&output).contains(&said), "{}", stderr(&output));
        }
    }
    // The usual place may lie deep below directories that come with it.
    let mut usual = Command::new(BINARY);
    usual.env_clear().env("HOME", home.path()).arg("ps");
    assert_eq!(code(&usual.output().expect("it runs")), 0);
    assert_eq!(code(&home.run(&["ps"])), 0);
    assert!(!home.path().exists());
}

// I12: a newer home is refused with a clear message and left alone.
#[test]
fn a_newer_home_is_refused_and_left_untouched() {
    let home = Home::made();
    let session = home.sessions().remove(0);
    home.ok(&["dev", "damage", "newer-home"]);
    let before = home.picture();
    let commands = [
        &["doctor"][..],
        &["log", &session],
        &["status", &session],
        &["dev", "hold"],
        &["dev", "append", "--records", "1"],
    ];
    for command in commands {
        let output = home.run(command);
        assert_eq!(code(&output), 2, "{command:?}");
        assert!(stderr(&output).contains("format 99, newer than format 2"), "{}", stderr(&output));
    }
    before.assert_same(&home.picture(), "a command");
}

// I10: a home.json that is rubbish does not keep doctor from the sessions.
#[test]
fn a_home_whose_description_is_rubbish_or_gone_is_still_looked_at() {
    let home = Home::made();
    let file = home.path().join("home.json");
    fs::write(&file, "rubbish").expect("written");
    let report = home.json(&["doctor"]);
    assert_eq!(findings(&report, "home_file_unreadable").len(), 1);
    assert_eq!(report["counts"]["sessions"], 12);
    assert_eq!(code(&home.run(&["log", "sess_1"])), 2);
    fs::remove_file(&file).expect("removed");
    let report = home.json(&["doctor"]);
    assert_eq!(findings(&report, "home_file_missing").len(), 1);
    assert_eq!(report["counts"]["sessions"], 12);
}

#[test]
fn the_second_process_on_a_home_is_told_who_has_it() {
    let home = Home::made();
    let mut first = home.spawn(&["dev", "hold", "--ready"]);
    let mut lines = BufReader::new(first.stdout.take().expect("a pipe")).lines();
    let held = lines.next().expect("a line").expect("text");
    assert_eq!(held, format!("held {}", first.id()));
    assert_eq!(lines.next().expect("a line").expect("text"), "ready 12");
    let second = home.run(&["dev", "hold"]);
    assert_eq!(code(&second), 2);
    assert!(stderr(&second).contains(&format!("in use by process {}", first.id())), "{}", stderr(&second));
    let report = home.json(&["doctor"]);
    let in_use = findings(&report, "home_in_use");
    assert!(in_use[0]["what"].as_str().is_some_and(|what| what.contains(&first.id().to_string())));
    assert_eq!(report["healthy"], true);
    drop(first.stdin.take());
    assert!(first.wait().expect("it ends").success());
    assert!(findings(&home.json(&["doctor"]), "home_in_use").is_empty());
    home.ok(&["dev", "hold"]);
}

// I9: what a copied home says of processes is not about this copy, and doctor says that it is one.
#[test]
fn a_copied_home_is_recognised() {
    let home = Home::made();
    assert!(findings(&home.json(&["doctor"]), "home_copied").is_empty());
    let copy = Home::empty();
    let copied = Command::new("cp").arg("-a").arg(home.path()).arg(copy.path()).status().expect("cp runs");
    assert!(copied.success());
    let report = copy.json(&["doctor"]);
    assert_eq!(findings(&report, "home_copied").len(), 1);
    assert_eq!(report["healthy"], true);
    // Whoever opens it makes it a home of its own.
    copy.ok(&["dev", "hold"]);
    assert!(findings(&copy.json(&["doctor"]), "home_copied").is_empty());
}

#[test]
fn permissions_are_tight_whatever_the_umask() {
    for umask in ["000", "077", "777"] {
        let home = Home::empty();
        let script = r#"umask "$1"; shift; "$@" make-home --sessions 4 && "$@" append --sessions 4 --records 900 >/dev/null"#;
        let made = Command::new("/bin/sh")
            .env_clear()
            .env("REKINDLE_HOME", home.path())
            .args(["-c", script, "sh", umask])
            .arg(dev_program(BINARY))
            .stdout(Stdio::null())
            .output()
            .expect("sh runs");
        assert!(made.status.success(), "umask {umask}: {}", stderr(&made));
        for (path, mode) in Picture::of(&home.path()).modes() {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "umask {umask}: {} is {mode:o}", path.display());
        }
        assert!(findings(&home.json(&["doctor"]), "wrong_mode").is_empty());
    }
}

#[test]
fn the_home_is_found_by_option_variable_and_default() {
    let home = Home::made();
    let run = |set: &[(&str, &str)], args: &[&str]| {
        let mut command = Command::new(BINARY);
        command.env_clear().envs(set.iter().copied()).args(args).output().expect("the binary runs")
    };
    let path = home.path();
    let path = path.to_str().expect("UTF-8");
    assert_eq!(code(&run(&[("REKINDLE_HOME", "/nowhere")], &["doctor", "--home", path])), 0);
    assert_eq!(code(&run(&[("REKINDLE_HOME", path)], &["doctor"])), 0);
    let state = home.path().join("xdg/.local/state");
    fs::create_dir_all(&state).expect("made");
    std::os::unix::fs::symlink(path, state.join("rekindle")).expect("linked");
    let xdg = state.to_str().expect("UTF-8");
    assert_eq!(code(&run(&[("XDG_STATE_HOME", xdg), ("REKINDLE_HOME", "")], &["doctor"])), 0);
    let user = home.path().join("xdg");
    let user = user.to_str().expect("UTF-8");
    assert_eq!(code(&run(&[("HOME", user), ("XDG_STATE_HOME", "relative")], &["doctor"])), 0);
    let nowhere = run(&[], &["doctor"]);
    assert_eq!(code(&nowhere), 2);
    assert!(stderr(&nowhere).contains("--home PATH"), "{}", stderr(&nowhere));
}
