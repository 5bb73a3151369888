//! The demonstration as a person or a program sees it: it succeeds, says why, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rekindle_lab::PATIENCE;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{BINARY, code, stderr, stdout};

/// A temporary directory of the test's own, so that what is left there is the demonstration's.
fn temporary() -> TempDir {
    tempfile::Builder::new().prefix("rk").tempdir().expect("a directory")
}

fn demo(temporary: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("demo").args(args).env_clear().env("TMPDIR", temporary.path()).stdin(Stdio::null());
    command
}

fn left(temporary: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(temporary.path()).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// Returns the processes whose command line or environment names a directory, those that have ended apart.
pub(crate) fn processes(below: &Path) -> Vec<i32> {
    let name = below.to_str().expect("text");
    let pids = std::fs::read_dir("/proc").expect("processes");
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let names = |file: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(name)
        };
        *pid != std::process::id() as i32 && (names("cmdline") || names("environ"))
    })
    .collect()
}

#[track_caller]
fn assert_nothing_left(temporary: &TempDir, output: &Output) {
    assert_eq!(left(temporary), Vec::<PathBuf>::new(), "{}{}", stdout(output), stderr(output));
    assert_eq!(processes(temporary.path()), [0; 0], "{}{}", stdout(output), stderr(output));
}

// I4, I5, I6, I7
#[test]
fn the_demonstration_holds_and_leaves_nothing_behind() {
    let temporary = temporary();
    let output = demo(&temporary, &[]).output().expect("it runs");
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{text}{}", stderr(&output));
    assert!(text.contains("Verdict, from the log") && text.contains("All 10 hold"), "{text}");
    assert!(text.contains("400 of 400: 0 lost, 0 repeated"), "{text}");
    assert!(!text.contains('\x1b') && !text.contains('\r'), "colours are for terminals: {text}");
    assert_eq!(stderr(&output), "");
    assert_nothing_left(&temporary, &output);
}

#[test]
fn for_programs_it_is_one_object_and_what_is_kept_can_be_looked_at() {
    let temporary = temporary();
    let output = demo(&temporary, &["--json", "--keep"]).output().expect("it runs");
    let text = stdout(&output);
    assert_eq!((code(&output), text.lines().count()), (0, 1), "{text}{}", stderr(&output));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["ok"], true, "{report}");
    let checks = report["checks"].as_array().expect("checks");
    assert!(checks.len() == 10 && checks.iter().all(|check| check["ok"] == true), "{report}");
    assert!(report["timeline"].as_array().is_some_and(|events| events.len() > 20), "{report}");
    assert_eq!(processes(temporary.path()), [0; 0]);
    let (home, session) =
        (report["home"].as_str().expect("kept"), report["session"].as_str().expect("an id"));
    for args in [vec!["doctor"], vec!["log", session], vec!["status", session]] {
        let look = Command::new(BINARY).env_clear().args(["--home", home]).args(args).output();
        let look = look.expect("it runs");
        assert_eq!(code(&look), 0, "{}", stderr(&look));
    }
}

#[test]
fn ended_in_the_middle_it_takes_everything_along() {
    let temporary = temporary();
    let mut child = demo(&temporary, &[]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("the agent speaks")))
        .expect("said")
        .expect("text");
    assert!(processes(temporary.path()).len() >= 4, "itself, a daemon, a holder, an agent");
    let process = Identity::of(child.id() as i32).expect("it lives");
    signal_exactly(&process, Signal::INT).expect("told");
    let begin = Instant::now();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(left(&temporary), Vec::<PathBuf>::new());
    assert_eq!(processes(temporary.path()), [0; 0]);
}

#[test]
fn what_goes_wrong_is_said_and_kept() {
    let temporary = temporary();
    let mut command = demo(&temporary, &[]);
    let output = command.env("REKINDLE_CRASH_AT", "answer.before_record").output().expect("it runs");
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    assert!(!stdout(&output).contains("Verdict"), "{}", stdout(&output));
    let kept = left(&temporary);
    assert_eq!(kept.len(), 1);
    assert!(stderr(&output).contains(kept[0].to_str().expect("text")), "{}", stderr(&output));
    assert!(kept[0].join("home/logs/daemon.log").is_file());
    assert_eq!(processes(temporary.path()), [0; 0]);
}

#[test]
fn whom_nobody_watches_any_more_ends_early_and_not_well() {
    let temporary = temporary();
    let mut child =
        demo(&temporary, &[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(left(&temporary), Vec::<PathBuf>::new());
}

#[test]
fn without_its_holder_it_says_how_to_build_one() {
    let temporary = temporary();
    let alone = temporary.path().join("rekindle");
    std::fs::copy(BINARY, &alone).expect("a copy");
    let output = Command::new(&alone).arg("demo").env_clear().output().expect("it runs");
    assert_eq!(code(&output), 1);
    let words = stderr(&output);
    assert!(words.contains("rekindle-holder") && words.contains("cargo build -p rekindle --bins"), "{words}");
}

#[test]
fn a_home_of_someone_else_is_not_taken() {
    let output =
        Command::new(BINARY).env_clear().args(["demo", "--home", "/nowhere"]).output().expect("it runs");
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}
