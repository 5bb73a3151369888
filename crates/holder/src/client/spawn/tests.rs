//! Directories of holders, and shell scripts that behave like good and bad ones.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::super::testing::{Home, eventually};
use super::super::{FileContents, LockState, inspect, install_executable};
use super::*;

fn spec() -> Spec {
    Spec {
        session_id: "sess_1".into(),
        attempt: 2,
        agent: Some("claude".into()),
        profile: "acp".into(),
        argv: vec!["agent".into(), "--acp".into()],
        cwd: "/work".into(),
        env_names: vec!["HOME".into()],
        umask: None,
        limits: Limits::default(),
    }
}

fn prepared(home: &Home, script: &str) -> Prepared {
    let source = home.path().join("fake-holder");
    std::fs::write(&source, format!("#!/bin/sh\n{script}\n")).expect("written");
    let executable = install_executable(&source, &home.path().join("bin")).expect("installed");
    prepare(&home.path().join("holders"), home.path(), &executable, spec()).expect("prepared")
}

#[test]
fn a_prepared_directory_is_complete_private_and_tells_what_it_is_for() {
    let home = Home::new();
    let prepared = prepared(&home, "");
    let (dir, launch) = (&prepared.dir, &prepared.launch);
    assert_eq!(launch.holder_id.len(), 34);
    assert!(dir.path().ends_with(&launch.holder_id) && dir.path().is_absolute());
    let seen = inspect(dir);
    assert_eq!(seen.launch, FileContents::There(launch.clone()));
    assert_eq!((seen.lock, seen.other_boot), (LockState::Missing, Some(false)));
    assert_eq!(launch.fingerprint, fingerprint("sess_1", Some("claude"), Path::new("/work")));
    assert_ne!(launch.fingerprint, fingerprint("sess_1", None, Path::new("claude/work")));
    assert!(launch.socket.as_os_str().len() <= MAX_SOCKET_PATH);
    for (path, mode) in
        [(dir.path().to_owned(), 0o700), (dir.journal(), 0o700), (dir.secret(), 0o600), (dir.launch(), 0o600)]
    {
        let found = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
    let other = self::prepared(&home, "");
    assert_ne!(other.launch.holder_id, launch.holder_id);
    assert_ne!(other.launch.socket, launch.socket);
    assert_ne!(other.dir.read_secret().expect("a secret"), dir.read_secret().expect("a secret"));
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_made() {
    let home = Home::new();
    let executable = Executable { path: "/bin/true".into(), sha256: String::new() };
    let holders = home.path().join("holders");
    let deep = home.path().join("d".repeat(100));
    let refused = prepare(&holders, &deep, &executable, spec());
    assert!(matches!(refused, Err(PrepareError::SocketTooLong { .. })));
    let refused = prepare(&holders, home.path(), &executable, Spec { argv: Vec::new(), ..spec() });
    assert!(matches!(refused, Err(PrepareError::NoCommand)));
    assert!(!holders.exists());
}

#[test]
fn a_holder_that_says_ready_is_ready_and_gets_its_directory_and_path_only() {
    let home = Home::new();
    let prepared = prepared(&home, r#"env > "$1/env.tmp"; echo ready; exec >&-; exec sleep 1000"#);
    let mut spawned = start(&prepared).expect("ready");
    let env = std::fs::read_to_string(prepared.dir.path().join("env.tmp")).expect("written");
    // The shell adds a few of its own.
    let mut names: Vec<&str> = env.lines().filter_map(|line| line.split('=').next()).collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["PATH"]);
    let stat = crate::identity::Stat::read(spawned.child.id() as i32).expect("it lives");
    assert_ne!(stat.group, spawned.child.id() as i32, "a leader of a group could not begin a session");
    spawned.child.kill().expect("ended");
    spawned.child.wait().expect("collected");
}

#[test]
fn what_a_holder_says_against_it_is_passed_on() {
    let home = Home::new();
    for (script, words) in [
        ("echo 'error: another holder has the lock'; exit 1", "another holder has the lock"),
        ("printf 'something odd'", "something odd"),
    ] {
        let refused = start(&prepared(&home, script));
        assert!(matches!(refused, Err(SpawnError::Refused { message }) if message == words), "{script}");
    }
    let died = start(&prepared(&home, "exit 3"));
    assert!(matches!(died, Err(SpawnError::Died { status: Some(status) }) if status.code() == Some(3)));
    let gone = Prepared { executable: "/nowhere/holder".into(), ..prepared(&home, "") };
    assert!(matches!(start(&gone), Err(SpawnError::Run { .. })));
}

#[test]
fn one_that_hangs_is_ended_in_time() {
    let home = Home::new();
    let mut prepared = prepared(&home, r#"echo $$ > "$1/pid"; exec sleep 1000"#);
    prepared.ready_within = Duration::from_millis(300);
    let before = Instant::now();
    assert!(matches!(start(&prepared), Err(SpawnError::Late { .. })));
    assert!(before.elapsed() < Duration::from_secs(10));
    // On a busy machine it may not even have come so far.
    let pid = std::fs::read_to_string(prepared.dir.path().join("pid")).unwrap_or_default();
    if let Ok(pid) = pid.trim().parse() {
        eventually(|| Identity::of(pid).is_err().then_some(()));
    }
}

#[test]
fn copies_are_shared_between_holders() {
    let home = Home::new();
    let (one, two) = (prepared(&home, "true"), prepared(&home, "true"));
    assert_eq!(one.executable, two.executable);
    assert_eq!(std::fs::metadata(&one.executable).expect("there").mode() & 0o777, 0o500);
    assert_eq!(one.launch.executable.len(), 64);
}
