//! The daemon as a service of a real service manager: whatever that one does to it, agents work on. And without a manager:
//! what is told instead.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rekindle_holder::identity::Identity;
use serde_json::{Value, json};

use crate::lab::{Lab, REKINDLE, wait_for};
use crate::manager::{UserManager, groups_of};
use crate::ran::{Stdin, ran};

/// A home with a service that is installed and an agent in mid-turn.
struct Stage {
    // The manager ends first: it would start again what the lab ends.
    manager: UserManager,
    lab: Lab,
}

impl Stage {
    fn new() -> Option<Stage> {
        let lab = Lab::without_daemon();
        Some(Stage { manager: UserManager::start(&lab)?, lab })
    }

    /// Installs the service and returns what is said of it.
    #[track_caller]
    fn install(&self, env: &[(&str, &str)]) -> Value {
        self.manager.ran_with(&self.lab, &["service", "install", "--json"], env).exits(0).json()
    }

    fn daemon(&self) -> i64 {
        self.lab.get("/api/version")["pid"].as_i64().expect("a process")
    }

    /// Begins a session whose agent waits in mid-turn; returns it and the agent.
    #[track_caller]
    fn agent_at_work(&self) -> (String, Identity) {
        let id = self.lab.run("say before\nbarrier here\nsay after");
        self.lab.reach("here");
        (id, Identity::of(self.lab.agents()[0]).expect("it lives"))
    }

    fn unit(&self) -> String {
        self.manager.status(&self.lab)["unit"].as_str().expect("a name").to_owned()
    }

    fn systemctl(&self, words: &[&str]) {
        self.manager.systemctl(&self.lab, &[words, &[&self.unit()]].concat());
    }

    /// Waits until a successor has the agent, lets it finish, and looks that nothing was lost or said twice.
    #[track_caller]
    fn finishes(&self, id: &str, agent: &Identity) {
        assert_eq!(self.lab.living_agents(), [agent.pid], "the same agent keeps working");
        self.lab.pass("here");
        assert_eq!(self.lab.wait_end(id), "completed");
        assert_eq!(self.lab.said(id).replace('\n', ""), "beforeafter");
        assert_eq!((self.lab.agents().len(), self.lab.count(id, "run.interrupted")), (1, 0));
    }

    #[track_caller]
    fn adopted(&self, id: &str, times: usize) {
        wait_for("an adoption", || (self.lab.try_count(id, "run.adopted")? == times).then_some(()));
    }
}

// I4: whichever way the manager replaces the daemon.
#[test]
fn a_service_that_is_restarted_killed_and_stopped_leaves_its_agent_alone() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    let told = stage.install(&[]);
    assert_eq!((&told["changed"], &told["to_do"]), (&json!(true), &json!([])), "{told}");
    let first = stage.daemon();
    assert_eq!((&told["active"], &told["main_pid"]), (&json!("active"), &json!(first)), "{told}");
    assert_eq!(manager.property(lab, "Type"), "notify");
    let unit = PathBuf::from(told["path"].as_str().expect("a path"));
    assert!(unit.starts_with(lab.path(".config/systemd/user")), "{}", unit.display());
    let mode = std::fs::metadata(&unit).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    // Again: nothing changes, and nobody is disturbed.
    let again = stage.install(&[]);
    assert_eq!((&again["changed"], &again["main_pid"]), (&json!(false), &json!(first)), "{again}");

    let (id, agent) = stage.agent_at_work();
    let status = manager.ran(lab, &["service", "status", "--json"]).exits(0).json();
    assert_eq!(status["holders"][0]["in"], "own_scope", "{status}");
    let holder = lab.living_holders().remove(0);
    assert!(groups_of(&holder).contains(".scope\n") && !groups_of(&holder).contains(&stage.unit()));

    stage.systemctl(&["restart"]);
    let second = manager.next_daemon(lab, first);
    stage.adopted(&id, 1);
    stage.systemctl(&["kill", "--kill-whom=main", "--signal=KILL"]);
    let third = manager.next_daemon(lab, second);
    stage.adopted(&id, 2);
    assert_eq!(manager.property(lab, "NRestarts"), "1");
    stage.systemctl(&["stop"]);
    assert!(!lab.daemon_described());
    assert_eq!(lab.living_agents(), [agent.pid]);
    let status = manager.ran(lab, &["service", "status"]).exits(1);
    assert!(status.out.contains("not_active") && status.out.contains("a scope of its own"), "{}", status.out);

    // Whoever needs a daemon starts the service.
    let restarted = manager.ran(lab, &["restart", "--json"]).exits(0).json();
    let fourth = manager.next_daemon(lab, third);
    assert_eq!((&restarted["pid"], &restarted["agents"]), (&json!(fourth), &json!(1)));
    assert_eq!(manager.status(lab)["main_pid"], json!(fourth));
    stage.adopted(&id, 3);
    stage.finishes(&id, &agent);
}

// I4
#[test]
fn removing_the_service_leaves_its_agent_alone_and_says_how_to_go_on() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    let path = PathBuf::from(stage.install(&[])["path"].as_str().expect("a path"));
    let first = stage.daemon();
    let (id, agent) = stage.agent_at_work();
    let gone = manager.ran(lab, &["service", "uninstall"]).exits(0);
    assert!(gone.err.contains("no daemon is running, 1 agent keeps running; `rekindle run`"), "{gone:?}");
    assert!(
        !path.exists()
            && !path.with_file_name("default.target.wants").join(path.file_name().expect("a name")).exists()
    );
    assert_eq!((lab.daemon_described(), lab.living_agents()), (false, vec![agent.pid]));
    manager.ran(lab, &["service", "uninstall"]).exits(0).tells("nothing was removed");
    // Without a service it is as it was before there was one.
    let status = manager.ran(lab, &["service", "status", "--json"]).exits(1).json();
    assert_eq!((&status["file"], &status["to_do"][0]["code"]), (&json!("missing"), &json!("not_installed")));
    manager.ran(lab, &["restart"]).exits(0);
    manager.next_daemon(lab, first);
    assert_eq!(manager.status(lab)["daemon_in_service"], false);
    stage.adopted(&id, 1);
    stage.finishes(&id, &agent);
}

// I4
#[test]
fn a_daemon_that_runs_already_leaves_and_the_services_has_its_agent() {
    let Some(mut stage) = Stage::new() else { return };
    stage.lab.start();
    let first = stage.daemon();
    let (id, agent) = stage.agent_at_work();
    let told = stage.install(&[]);
    stage.lab.died();
    assert_eq!((&told["agents"], &told["daemon_in_service"]), (&json!(1), &json!(true)), "{told}");
    assert_ne!(stage.daemon(), first);
    stage.adopted(&id, 1);
    stage.finishes(&id, &agent);
}

// I4: where there are no scopes the unit's KillMode keeps agents alive.
#[test]
fn without_scopes_a_holder_is_in_the_services_group_and_outlives_its_stop() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    std::fs::create_dir(lab.path("bin")).expect("a directory");
    fake(lab, "systemd-run", "exit 1");
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").expect("a path"));
    stage.install(&[("PATH", &path)]);
    let first = stage.daemon();
    let (id, agent) = stage.agent_at_work();
    let status = manager.ran(lab, &["service", "status", "--json"]).exits(0).json();
    assert_eq!(status["holders"][0]["in"], "service", "{status}");
    let text = manager.ran(lab, &["service", "status"]).exits(0);
    assert!(text.out.contains("KillMode=process"), "{}", text.out);
    // A setting beside the file takes the net away: that is told, not what the file says.
    let beside = format!("{}.d", status["path"].as_str().expect("a path"));
    std::fs::create_dir(&beside).expect("made");
    std::fs::write(format!("{beside}/mine.conf"), "[Service]\nKillMode=control-group\n").expect("written");
    manager.systemctl(lab, &["daemon-reload"]);
    let text = manager.ran(lab, &["service", "status"]).exits(1);
    assert!(text.out.contains("KillMode=control-group") && !text.out.contains("it stays"), "{}", text.out);
    std::fs::remove_dir_all(&beside).expect("removed");
    manager.systemctl(lab, &["daemon-reload"]);
    stage.systemctl(&["stop"]);
    assert_eq!((lab.daemon_described(), lab.living_agents()), (false, vec![agent.pid]));
    stage.systemctl(&["start"]);
    manager.next_daemon(lab, first);
    stage.adopted(&id, 1);
    stage.finishes(&id, &agent);
}

// I4
#[test]
fn a_services_daemon_that_hangs_is_replaced_by_the_service() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    stage.install(&[]);
    let first = stage.daemon();
    let (id, agent) = stage.agent_at_work();
    stage.systemctl(&["kill", "--kill-whom=main", "--signal=STOP"]);
    manager.ran(lab, &["restart"]).exits(0).tells("does not answer");
    let second = manager.next_daemon(lab, first);
    assert_eq!(manager.status(lab)["main_pid"], json!(second));
    stage.adopted(&id, 1);
    stage.finishes(&id, &agent);
}

// I13
#[test]
fn a_service_that_was_stopped_stays_stopped_and_starts_when_it_is_needed() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    stage.install(&[]);
    let first = stage.daemon();
    manager.ran(lab, &["stop"]).exits(0);
    wait_for("the service's end", || (manager.property(lab, "ActiveState") == "inactive").then_some(()));
    let ended = ["Result", "NRestarts"].map(|name| manager.property(lab, name));
    assert_eq!(ended, ["success", "0"], "and nobody brings it back");
    let agent = lab.demo(&[]);
    let mut words = vec!["run", "run env > environment\nsay done", "--"];
    words.extend(agent.iter().map(String::as_str));
    manager.ran(lab, &words).exits(0);
    let second = manager.next_daemon(lab, first);
    assert_eq!(manager.status(lab)["main_pid"], json!(second), "it was started by the manager");
    let environment =
        std::fs::read_to_string(lab.path("work").join("environment")).expect("the agent wrote it");
    assert!(!environment.contains("NOTIFY_SOCKET"), "{environment}");
}

// I12: what was there is kept, and what died midway is completed.
#[test]
fn a_file_that_says_something_else_is_shown_kept_and_replaced() {
    let Some(stage) = Stage::new() else { return };
    let (manager, lab) = (&stage.manager, &stage.lab);
    // The first try writes the file, and then nobody reads it.
    std::fs::create_dir(lab.path("bin")).expect("a directory");
    fake(lab, "systemctl", "exit 1");
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").expect("a path"));
    let failed = manager.ran_with(lab, &["service", "install"], &[("PATH", &path)]).exits(1);
    assert!(failed.err.contains("systemctl --user daemon-reload"), "{failed:?}");
    std::fs::remove_file(lab.path("bin/systemctl")).expect("removed");
    let told = stage.install(&[("PATH", &path)]);
    assert_eq!((&told["changed"], &told["to_do"]), (&json!(false), &json!([])), "{told}");

    let file = PathBuf::from(told["path"].as_str().expect("a path"));
    let ours = std::fs::read_to_string(&file).expect("a file");
    let theirs = ours.replace("KillMode=process", "KillMode=control-group");
    std::fs::write(&file, &theirs).expect("written");
    let status = manager.ran(lab, &["service", "status", "--json"]).exits(1).json();
    assert_eq!((&status["file"], &status["to_do"][0]["code"]), (&json!("outdated"), &json!("outdated")));
    // Another PATH alone is no reason to call it old.
    let first = stage.daemon();
    let shown = manager.ran_with(lab, &["service", "install"], &[("PATH", &path)]).exits(0);
    for words in ["-KillMode=control-group", "+KillMode=process", ".bak", "reboot   agents end"] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    manager.next_daemon(lab, first);
    assert_eq!(std::fs::read_to_string(format!("{}.bak", file.display())).expect("kept"), theirs);
    assert_eq!(std::fs::read_to_string(&file).expect("there"), ours);
    manager.ran(lab, &["service", "status"]).exits(0);
}

/// Puts a program into the lab's own directory of programs.
fn fake(lab: &Lab, name: &str, script: &str) {
    let path = lab.path("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("set");
}

/// Returns the file of a lab's unit.
fn unit_file(lab: &Lab) -> PathBuf {
    let status = lab.ran(&["service", "status", "--json"]).json();
    PathBuf::from(status["path"].as_str().expect("a path"))
}

#[test]
fn without_a_manager_each_command_says_what_is_the_case_and_what_to_do() {
    let lab = Lab::without_daemon();
    let refused = lab.ran(&["service", "install", "--json"]).exits(1);
    assert_eq!(refused.error_code(), "no_user_manager");
    lab.ran(&["service", "install"]).exits(1).tells("rekindle serve");
    assert!(!lab.home().exists() && !lab.path(".config").exists(), "nothing is written");
    let status = lab.ran(&["service", "status", "--json"]).exits(1).json();
    assert_eq!((&status["file"], &status["active"]), (&json!("missing"), &Value::Null), "{status}");
    assert!(status["to_do"][0]["remedy"].as_str().expect("words").contains("rekindle serve"), "{status}");
    lab.ran(&["service", "uninstall"]).exits(0).tells("nothing was removed");
    let text = lab.ran(&["service", "status"]).exits(1);
    assert!(text.out.contains("not installed") && text.out.contains("KillUserProcesses="), "{}", text.out);
}

#[test]
fn without_a_manager_a_file_of_ours_goes_and_someone_elses_stays() {
    let lab = Lab::without_daemon();
    let file = unit_file(&lab);
    let wants = file.with_file_name("default.target.wants");
    std::fs::create_dir_all(&wants).expect("made");
    std::fs::write(&file, "[Service]\nExecStart=/usr/bin/true\n").expect("written");
    let refused = lab.ran(&["service", "uninstall", "--json"]).exits(1);
    assert_eq!(refused.error_code(), "unit_foreign");
    assert!(file.exists());
    std::fs::write(&file, "[Service]\n\n[X-Rekindle]\n").expect("written");
    std::os::unix::fs::symlink(&file, wants.join(file.file_name().expect("a name"))).expect("linked");
    lab.ran(&["service", "uninstall"]).exits(0).tells("no service manager could be asked");
    assert!(!file.exists() && std::fs::read_dir(&wants).expect("a list").count() == 0);
}

#[test]
fn the_usual_home_has_the_usual_name_and_others_have_their_own() {
    let lab = Lab::without_daemon();
    let mut usual = std::process::Command::new(REKINDLE);
    usual.args(["service", "status", "--json"]).env("HOME", lab.path(".")).env_remove("REKINDLE_HOME");
    usual.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("XDG_RUNTIME_DIR", lab.path("run"));
    assert_eq!(ran(&mut usual, Stdin::Nothing).exits(1).json()["unit"], "rekindle.service");
    let other = lab.ran(&["service", "status", "--json"]).exits(1).json();
    let other = other["unit"].as_str().expect("a name");
    assert!(other.starts_with("rekindle-") && other.len() == "rekindle-12345678.service".len(), "{other}");
}

// I4: a manager that is of no use keeps nobody from working.
#[test]
fn a_service_that_does_not_start_is_told_and_done_without() {
    let lab = Lab::without_daemon();
    let file = unit_file(&lab);
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    let home = lab.home();
    std::fs::write(&file, format!("[Service]\n\n[X-Rekindle]\nHome={}\n", home.display())).expect("written");
    // It is in charge, but nobody can be asked: as if it were not there.
    let alone = lab.ran(&["restart"]).exits(0);
    assert!(!alone.err.contains("note:"), "{alone:?}");
    lab.ran(&["stop"]).exits(0);
    std::fs::create_dir_all(lab.path("run/systemd")).expect("made");
    std::fs::create_dir(lab.path("bin")).expect("made");
    let _manager = UnixListener::bind(lab.path("run/systemd/private")).expect("a socket");
    fake(&lab, "systemctl", "echo 'Unit is masked.' >&2; exit 1");
    fake(&lab, "systemd-run", "exit 1");
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").expect("a path"));
    let noted = ran(lab.rekindle(&["restart"]).env("PATH", &path), Stdin::Nothing).exits(0);
    assert!(noted.err.contains("Unit is masked.") && noted.err.contains("outside the service"), "{noted:?}");
    // Nor does one that gives no scopes.
    let id = lab.run("say done");
    assert_eq!(lab.wait_end(&id), "completed");
    let log = std::fs::read_to_string(lab.home().join("logs/daemon.log")).expect("a log");
    assert_eq!(log.matches("gave no scope").count(), 1, "{log}");
    let again = lab.run("say done too");
    assert_eq!(lab.wait_end(&again), "completed");
    let log = std::fs::read_to_string(lab.home().join("logs/daemon.log")).expect("a log");
    assert_eq!(log.matches("gave no scope").count(), 1, "it is told once: {log}");
}

#[test]
fn doctor_tells_where_daemon_and_holders_are_and_calls_it_no_damage() {
    let lab = Lab::new();
    let id = lab.run("barrier here");
    lab.reach("here");
    let doctor = lab.ran(&["doctor", "--json"]).exits(0).json();
    assert_eq!(doctor["warnings"], 0, "{doctor}");
    let service = &doctor["service"];
    assert_eq!(service["daemon_pid"], json!(lab.daemon_pid()));
    assert_eq!(service["holders"].as_array().map(Vec::len), Some(1), "{service}");
    assert!(service["holders"][0]["cgroup"].is_string(), "{service}");
    let text = lab.ran(&["doctor"]).exits(0).out;
    for words in ["daemon   process", "agents   1 agent", "linger:", "KillUserProcesses:"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    lab.pass("here");
    lab.wait_end(&id);
}
