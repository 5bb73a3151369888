//! Programs in the place of the one that asks the manager, good and bad: a holder is there in the end, once.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use super::super::spawn::Spec;
use super::super::testing::{Home, eventually};
use super::super::{LockState, inspect, install_executable, prepare};
use super::*;
use crate::dir::Limits;
use crate::identity::Identity;

/// Does what the real holder does for us: it is alone, begins a journal, says that it is ready, and stays.
const HOLDER: &str = r#"exec 9>"$1/lock"; flock -n 9 || { echo 'error: another holder has the lock'; exit 1; }
[ -e "$1/journal/00000001.log" ] && { echo 'error: there is a journal already'; exit 1; }
: > "$1/journal/00000001.log"; echo $$ >> "$1/starts"; env > "$1/env"; [ -e "$1/hang" ] && { rm "$1/hang"; exec sleep 1000; }
echo ready; exec >&- 2>&-; exec sleep 1000"#;

/// Does what the real program does: it becomes what stands behind `--`.
const GOOD: &str =
    r#"echo "$@" > "$(dirname "$0")/asked"; while [ "$1" != -- ]; do shift; done; shift; exec "$@""#;

struct Lab {
    home: Home,
    _manager: UnixListener,
}

impl Lab {
    /// A runtime directory with something that listens, and a program.
    fn new(program: Option<&str>) -> Lab {
        let home = Home::new();
        std::fs::create_dir_all(home.path().join("run/systemd")).expect("made");
        let manager = UnixListener::bind(home.path().join("run/systemd/private")).expect("a socket");
        if let Some(program) = program {
            let path = home.path().join(PROGRAM);
            std::fs::write(&path, format!("#!/bin/sh\n{program}\n")).expect("written");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("set");
        }
        Lab { home, _manager: manager }
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "XDG_RUNTIME_DIR" => Some(self.home.path().join("run").into()),
            "PATH" => Some(format!("relative:{}", self.home.path().display()).into()),
            _ => None,
        }
    }

    fn scopes(&self) -> Scopes {
        let scopes = Scopes::find(|name| self.variable(name)).expect("a manager");
        Scopes { within: Duration::from_millis(500), ..scopes }
    }

    fn prepared(&self) -> Prepared {
        let source = self.home.path().join("fake-holder");
        std::fs::write(&source, format!("#!/bin/sh\n{HOLDER}\n")).expect("written");
        let executable = install_executable(&source, &self.home.path().join("bin")).expect("installed");
        let spec = Spec {
            session_id: "sess_1".into(),
            attempt: 1,
            agent: None,
            profile: "exec".into(),
            argv: vec!["true".into()],
            cwd: "/".into(),
            env_names: Vec::new(),
            umask: None,
            limits: Limits::default(),
        };
        let holders = self.home.path().join("holders");
        prepare(&holders, self.home.path(), &executable, spec).expect("prepared")
    }
}

/// Returns the processes that began as holders of a directory.
fn starts(prepared: &Prepared) -> Vec<i32> {
    let text = std::fs::read_to_string(prepared.dir.path().join("starts")).unwrap_or_default();
    text.lines().filter_map(|pid| pid.parse().ok()).collect()
}

fn end(mut spawned: Spawned) {
    spawned.child.kill().expect("ended");
    spawned.child.wait().expect("collected");
}

/// The one that was started is the only one that lives.
#[track_caller]
fn is_the_only_one(prepared: &Prepared, spawned: &Spawned) {
    let ours = spawned.child.id() as i32;
    assert_eq!(starts(prepared).last(), Some(&ours));
    for other in starts(prepared).into_iter().filter(|pid| *pid != ours) {
        eventually(|| Identity::of(other).is_err().then_some(()));
    }
    assert!(matches!(inspect(&prepared.dir).lock, LockState::Held { .. }));
}

#[test]
fn a_holder_is_started_in_a_scope_of_its_own_under_its_own_pid_and_with_its_path_only() {
    let lab = Lab::new(Some(GOOD));
    let prepared = lab.prepared();
    let (spawned, beside) = start_apart(&prepared, Some(&lab.scopes())).expect("a holder");
    assert!(beside.is_none(), "{beside:?}");
    is_the_only_one(&prepared, &spawned);
    let asked = std::fs::read_to_string(lab.home.path().join("asked")).expect("asked");
    let name = scope_name(&prepared.launch.holder_id);
    assert!(
        asked.contains(&format!("--user --scope --quiet --collect --property=Delegate=yes --unit={name}"))
    );
    let env = std::fs::read_to_string(prepared.dir.path().join("env")).expect("written");
    assert!(env.contains("PATH=") && !env.contains("XDG_RUNTIME_DIR"), "{env}");
    end(spawned);
}

#[test]
fn whatever_the_program_does_a_holder_is_started_beside_us_and_the_manager_left_alone_for_a_while() {
    for (program, reason) in [
        ("exit 1", "ended before it was ready"),
        ("echo 'Failed to start transient scope unit'; exit 1", "Failed to start"),
        ("exec sleep 1000", "not ready within 500 ms"),
        ("exec /nowhere/at-all", "ended before it was ready"),
        // It comes as far as to have a holder, which then hangs.
        (
            r#"for last; do :; done; : > "$last/hang"; while [ "$1" != -- ]; do shift; done; shift; exec "$@""#,
            "not ready within",
        ),
    ] {
        let lab = Lab::new(Some(program));
        let (prepared, scopes) = (lab.prepared(), lab.scopes());
        let begin = Instant::now();
        let (spawned, beside) = start_apart(&prepared, Some(&scopes)).expect("a holder");
        assert!(begin.elapsed() < Duration::from_secs(10), "{program}");
        let why = beside.map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains(reason), "{program}: {why}");
        is_the_only_one(&prepared, &spawned);
        assert!(scopes.clone().is_paused(), "clones know it too");
        end(spawned);
        let next = lab.prepared();
        let (spawned, beside) = start_apart(&next, Some(&scopes)).expect("a holder");
        assert!(beside.is_none() && starts(&next).len() == 1, "it is not even asked: {beside:?}");
        end(spawned);
    }
}

#[test]
fn one_that_went_away_since_it_was_found_is_no_obstacle() {
    let lab = Lab::new(Some(GOOD));
    let (prepared, scopes) = (lab.prepared(), lab.scopes());
    std::fs::remove_file(lab.home.path().join(PROGRAM)).expect("removed");
    let (spawned, beside) = start_apart(&prepared, Some(&scopes)).expect("a holder");
    assert!(matches!(beside, Some(SpawnError::Run { .. })), "{beside:?}");
    is_the_only_one(&prepared, &spawned);
    end(spawned);
}

#[test]
fn a_holder_that_outlives_the_program_that_started_it_is_not_doubled() {
    // It does not become the holder: killing it leaves the holder alone.
    let keeps =
        r#"while [ "$1" != -- ]; do shift; done; shift; setsid "$@" >/dev/null 2>&1 </dev/null & sleep 1000"#;
    let lab = Lab::new(Some(keeps));
    let (prepared, scopes) = (lab.prepared(), lab.scopes());
    // On a busy machine it may not have come so far; then the lock sees to it that one of them goes.
    let outcome = start_apart(&prepared, Some(&scopes));
    let pids = eventually(|| Some(starts(&prepared)).filter(|pids| !pids.is_empty()));
    assert_eq!(pids.len(), 1, "{outcome:?}");
    let only = Identity::of(pids[0]).expect("it lives");
    crate::tree::signal_exactly(&only, rustix::process::Signal::KILL).expect("ended");
}

#[test]
fn without_a_manager_that_listens_and_a_program_there_are_no_scopes() {
    let lab = Lab::new(None);
    assert!(Scopes::find(|name| lab.variable(name)).is_none(), "no program");
    let lab = Lab::new(Some(GOOD));
    assert!(Scopes::find(|name| lab.variable(name)).is_some());
    assert!(Scopes::find(|name| lab.variable(name).filter(|_| name != "XDG_RUNTIME_DIR")).is_none());
    assert!(Scopes::find(|name| lab.variable(name).filter(|_| name != "PATH")).is_none());
    let Lab { home, _manager } = lab;
    drop(_manager);
    assert!(home.path().join("run/systemd/private").exists() && !manager_listens(&home.path().join("run")));
    assert!(!manager_listens(Path::new("relative")));
    let lab = Lab::new(None);
    let prepared = lab.prepared();
    let (spawned, beside) = start_apart(&prepared, None).expect("a holder");
    assert!(beside.is_none());
    is_the_only_one(&prepared, &spawned);
    end(spawned);
}
