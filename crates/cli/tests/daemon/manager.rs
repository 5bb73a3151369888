//! A real service manager of a user, beside whatever runs this machine: in a mount namespace and control groups of its own.
//! Where that is impossible there is none, and each test says so.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rekindle_holder::identity::Identity;
use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::ran::{Ran, Stdin, ran};

const SCRIPT: &str = include_str!("manager.sh");

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A manager that ends with its guard, with everyone in it.
pub(crate) struct UserManager {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl UserManager {
    /// Starts one in a lab; none where that is impossible.
    pub(crate) fn start(lab: &Lab) -> Option<UserManager> {
        let skip = |why: &str| {
            eprintln!("no service manager can be started here: {why}; nothing is shown");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("only root can make a mount namespace");
        }
        if !std::path::Path::new("/lib/systemd/systemd").exists() {
            return skip("there is no systemd");
        }
        let name = format!("rekindle-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", SCRIPT, "sh", &name]).arg(lab.path("run")).arg(lab.path("."));
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = spawned else { return skip("there is no unshare") };
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let manager = UserManager { child, said };
        if line.trim() == "ready" { Some(manager) } else { skip(line.trim()) }
    }

    /// Returns a command that is run where the manager is.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--mount=/proc/{}/ns/mnt", self.child.id()));
        let directory = command.get_current_dir().map(|dir| dir.display().to_string()).unwrap_or("/".into());
        inside.arg(format!("--wd={directory}")).arg("--").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// Runs a command of ours to its end, where the manager is.
    #[track_caller]
    pub(crate) fn ran(&self, lab: &Lab, arguments: &[&str]) -> Ran {
        self.ran_with(lab, arguments, &[])
    }

    /// Likewise, with variables.
    #[track_caller]
    pub(crate) fn ran_with(&self, lab: &Lab, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
        let mut command = lab.rekindle(arguments);
        command.env_remove("XDG_CONFIG_HOME").envs(env.iter().copied());
        ran(&mut self.inside(&command), Stdin::Nothing)
    }

    /// Asks the manager, as anyone would.
    #[track_caller]
    pub(crate) fn systemctl(&self, lab: &Lab, arguments: &[&str]) -> String {
        let mut command = Command::new("systemctl");
        command.arg("--user").args(arguments).env("XDG_RUNTIME_DIR", lab.path("run")).current_dir("/");
        ran(&mut self.inside(&command), Stdin::Nothing).exits(0).out
    }

    /// Returns what the manager knows of a home's service.
    #[track_caller]
    pub(crate) fn property(&self, lab: &Lab, name: &str) -> String {
        let unit = self.status(lab)["unit"].as_str().expect("a name").to_owned();
        self.systemctl(lab, &["show", &unit, "--value", &format!("--property={name}")]).trim().to_owned()
    }

    /// Returns what `service status` says.
    #[track_caller]
    pub(crate) fn status(&self, lab: &Lab) -> Value {
        self.ran(lab, &["service", "status", "--json"]).json()
    }

    /// Waits until another daemon than this answers, and returns its process.
    #[track_caller]
    pub(crate) fn next_daemon(&self, lab: &Lab, before: i64) -> i64 {
        wait_for("another daemon", || {
            let pid = lab.try_get("/api/version")?["pid"].as_i64()?;
            (pid != before).then_some(pid)
        })
    }
}

/// Returns the control groups of a process.
pub(crate) fn groups_of(process: &Identity) -> String {
    std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).expect("it lives")
}

impl Drop for UserManager {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It says a word when everyone is gone; a pipe that ends says as much.
        let mut line = String::new();
        let _ = self.said.read_line(&mut line);
        let _ = self.child.wait();
    }
}
