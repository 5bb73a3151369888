//! The self-test as a person or a program sees it: it holds, says what it looked at, and leaves nothing behind.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::demo::processes;
use crate::support::{BINARY, code, stderr, stdout};

fn ground() -> TempDir {
    tempfile::Builder::new().prefix("rk").tempdir().expect("a directory")
}

fn chaos(ground: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("chaos").args(args).arg("--dir").arg(ground.path());
    command.env_clear().env("HOME", ground.path()).stdin(Stdio::null());
    command
}

fn left(ground: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ground.path()).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[track_caller]
fn assert_held(ground: &TempDir, output: &Output) -> Value {
    let text = stdout(output);
    let words = format!("{text}{}", stderr(output));
    // What was violated first explains the rest, which may be long.
    let first = serde_json::from_str::<Value>(&text).unwrap_or_default()["violations"][0].to_string();
    assert_eq!(code(output), 0, "{first}\n{words:.4000}\nfirst: {first}");
    assert_eq!(left(ground), Vec::<PathBuf>::new(), "{words}");
    assert_eq!(processes(ground.path()), [0; 0], "{words}");
    serde_json::from_str(&text).expect("JSON")
}

// I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I12, I13, I14
#[test]
fn three_rounds_of_a_known_plan_hold_and_leave_nothing_behind() {
    let ground = ground();
    let output = chaos(&ground, &["--seed", "4", "--rounds", "3", "--json"]).output().expect("it runs");
    let report = assert_held(&ground, &output);
    assert_eq!((&report["ok"], &report["seed"], &report["rounds"]), (&true.into(), &4.into(), &3.into()));
    let promises = report["promises"].as_array().expect("promises");
    assert_eq!(promises.len(), 14);
    for promise in promises.iter().filter(|promise| promise["promise"] != "I11") {
        let looked = promise["checked"].as_u64().expect("a number");
        let excused = matches!(promise["promise"].as_str(), Some("I7" | "I10" | "I13"));
        assert!(looked > 0 || excused, "{promise}");
        assert_eq!(promise["held"], promise["checked"], "{promise}");
    }
    let struck =
        report["faults"].as_array().expect("faults").iter().filter_map(|fault| fault["times"].as_u64());
    assert!(struck.sum::<u64>() >= 5, "{report}");
}

// I1, I3, I4, I5, I6, I8, I14
#[test]
fn a_plan_that_nobody_has_seen_before_holds() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = (now.as_nanos() % 1_000_000_007).to_string();
    eprintln!("seed {seed}");
    let ground = ground();
    let output = chaos(&ground, &["--seed", &seed, "--seconds", "12", "--json"]).output().expect("it runs");
    assert_held(&ground, &output);
}

#[test]
fn ended_in_the_middle_it_takes_everything_along() {
    let ground = ground();
    let mut child = chaos(&ground, &["--seconds", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begin = Instant::now();
    while processes(ground.path()).len() < 4 {
        assert!(begin.elapsed() < Duration::from_secs(60), "itself, a daemon, a holder, an agent");
        std::thread::sleep(Duration::from_millis(20));
    }
    let process = Identity::of(child.id() as i32).expect("it lives");
    signal_exactly(&process, Signal::INT).expect("told");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(left(&ground), Vec::<PathBuf>::new());
    assert_eq!(processes(ground.path()), [0; 0]);
}

// A daemon that cannot do what it should is found out: here one that dies whenever an answer or a message comes.
#[test]
fn a_daemon_that_does_not_keep_its_promises_is_found_out_and_what_there_is_of_it_kept() {
    let ground = ground();
    let mut command = chaos(&ground, &["--seed", "1", "--rounds", "1"]);
    // Nobody can be given an agent: its own step kills the daemon each time it comes by.
    let output = command.env("REKINDLE_CRASH_AT", "start.before_launch").output().expect("it runs");
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("rekindle chaos --seed 1 --rounds 1"), "{text}");
    assert!(text.contains("✗ I"), "{text}");
    let kept = left(&ground);
    assert_eq!(kept.len(), 1, "{text}");
    assert!(kept[0].join("home/logs/daemon.log").is_file(), "{text}");
    assert_eq!(processes(ground.path()), [0; 0]);
}

#[test]
fn where_nothing_can_be_made_it_says_so() {
    let output =
        Command::new(BINARY).args(["chaos", "--dir", "/nowhere"]).env_clear().output().expect("it runs");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--dir PATH"), "{}", stderr(&output));
    let output = Command::new(BINARY).args(["chaos", "--rounds", "0"]).env_clear().output().expect("it runs");
    assert_eq!(code(&output), 2);
}
