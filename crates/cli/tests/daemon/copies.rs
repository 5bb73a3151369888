//! Copies of a home while its daemon lives: the copied description of the daemon names the original's socket and process,
//! and whoever means the copy must not reach them.

use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_lab::Daemon;
use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, end_all, wait_for};

/// A copy of a lab's home; its own daemon and holders end with it.
struct Copy<'a> {
    lab: &'a Lab,
    home: PathBuf,
}

impl Copy<'_> {
    fn of<'a>(lab: &'a Lab, name: &str) -> Copy<'a> {
        let home = lab.path(name);
        // While the database of tasks is made, files come and go that nobody could copy.
        wait_for("the database of tasks", || {
            let stats = lab.try_ask("GET", "/api/tasks/stats", "", &Value::Null)?;
            (stats.status == 200).then_some(())
        });
        let copied = Command::new("cp").arg("-a").arg(lab.home()).arg(&home).status().expect("cp runs");
        assert!(copied.success());
        Copy { lab, home }
    }

    /// Runs a command that means the copy; returns its exit code and what it printed.
    fn rekindle(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = at(self.lab, &self.home).args(arguments).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        end_all(&self.home);
    }
}

/// Returns a command that means a home.
fn at(lab: &Lab, home: &Path) -> Command {
    let ours = lab.rekindle(&[]);
    let mut command = Command::new(ours.get_program());
    command.arg("--home").arg(home).current_dir(lab.path("work"));
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// I9: nothing is done to a home that was not meant, whatever the files of its copy say.
#[test]
fn commands_on_a_copied_home_do_nothing_to_the_original() {
    let lab = Lab::new();
    let id = lab.run("say hello");
    lab.wait_end(&id);
    let agent = json!({"profile": "acp", "command": lab.demo(&[])});
    let other = lab.create(&json!({"working_dir": lab.path("work"), "agent": agent}));
    let untouched = |what: &str| {
        assert_eq!(lab.get("/api/version")["pid"], lab.daemon_pid(), "{what}");
        assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(2), "{what}");
        assert_eq!(lab.count(&id, "message.user"), 1, "{what}");
        assert_eq!(lab.count(&id, "run.cancel_requested"), 0, "{what}");
        assert_eq!(lab.living_agents().len(), 1, "{what}");
    };
    untouched("before");

    let copy = Copy::of(&lab, "copy");
    let (code, said) = copy.rekindle(&["stop"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no daemon"), "{said}");
    untouched("stop");
    let (code, said) = copy.rekindle(&["stop", "--all"]);
    assert_eq!(code, Some(0), "{said}");
    untouched("stop --all");
    let (code, said) = copy.rekindle(&["ps", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    untouched("ps");
    let (code, said) = copy.rekindle(&["rm", "--force", &other]);
    assert_eq!(code, Some(0), "{said}");
    untouched("rm");
    // It has a daemon of its own now, which is not the original's.
    let theirs: Value =
        serde_json::from_slice(&std::fs::read(copy.home.join("daemon.json")).expect("read")).expect("JSON");
    assert_ne!(theirs["pid"], lab.daemon_pid());
    let (code, said) = copy.rekindle(&["send", "--detach", &id, "say again"]);
    assert_eq!(code, Some(0), "{said}");
    untouched("send");
    let (code, said) = copy.rekindle(&["restart"]);
    assert_eq!(code, Some(0), "{said}");
    untouched("restart");
}

/// I9: a description that was copied makes nobody signal the process it names.
#[test]
fn a_takeover_in_a_copied_home_signals_nobody() {
    let lab = Lab::new();
    let copy = Copy::of(&lab, "copy");
    let mut command = at(&lab, &copy.home);
    command.args(["serve", "--background", "--takeover"]);
    let _theirs = Daemon::start(command, &lab.path("theirs.log")).expect("it is ready");
    let described = lab.get("/api/version");
    assert_eq!(described["pid"], lab.daemon_pid());
}

/// I9: whoever answers at a socket says which home it serves, and is asked for nothing if that is another one.
#[test]
fn a_daemon_of_another_home_at_the_same_socket_is_asked_for_nothing() {
    let (mut lab, other) = (Lab::new(), Lab::new());
    lab.kill();
    let file = lab.home().join("daemon.json");
    let mut place: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("JSON");
    let theirs = std::fs::read(other.home().join("daemon.json")).expect("read");
    let theirs: Value = serde_json::from_slice(&theirs).expect("JSON");
    place["socket"] = theirs["socket"].clone();
    std::fs::write(&file, place.to_string()).expect("written");
    for arguments in [&["stop"][..], &["stop", "--all"], &["ps"], &["send", "--detach", "say hi"]] {
        let output = lab.rekindle(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}: {said}");
        assert!(said.contains("another home"), "{arguments:?}: {said}");
        assert!(said.contains("daemon.json"), "{arguments:?}: {said}");
    }
    assert_eq!(other.get("/api/version")["pid"], other.daemon_pid());
}

/// I5: what the original was doing is not continued in its copy, where nobody can tell what became of it.
#[test]
fn a_copy_does_not_go_on_with_the_work_of_the_original() {
    let lab = Lab::new();
    let id = lab.run("say begun\nbarrier middle\nsay over");
    lab.reach("middle");
    let copy = Copy::of(&lab, "copy");
    let status = || -> Value {
        let (code, text) = copy.rekindle(&["status", &id, "--json"]);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).expect("JSON")
    };
    // Any command that needs a daemon starts one for the copy.
    let (code, text) = copy.rekindle(&["cancel", "sess_01arz3ndektsv4rrffq69g5fav"]);
    assert_ne!(code, Some(0), "{text}");
    wait_for("why it waits", || status()["held"].as_str()?.contains("belongs to the original").then_some(()));
    kill(lab.agents()[0]);
    wait_for("its end in the copy", || (status()["run"]["state"] == "interrupted").then_some(()));
    let held = wait_for("why it is held", || {
        let held = status()["held"].as_str()?.to_owned();
        (!held.contains("belongs to the original")).then_some(held)
    });
    assert!(held.contains("resume it") && status()["run"]["uncertain"]["turn"] == true, "{held}");
    let (_, log) = copy.rekindle(&["log", &id, "--json"]);
    assert_eq!(log.matches("\"kind\":\"run.started\"").count(), 1, "{log}");
}
