//! The user's service manager: whether it can be spoken to, and speaking to it. Every call has an end.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rekindle_holder::client::manager_listens;

use crate::failure::Failure;
use crate::logout::Facts;
use crate::problem::Problem;

/// How long a call may take that only asks.
pub const SOON: Duration = Duration::from_secs(10);

/// How long one may take after which every unit is read anew.
pub const RELOADED: Duration = Duration::from_secs(60);

/// How often it is looked whether a call has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A manager that can be spoken to.
#[derive(Debug)]
pub struct Manager {
    systemctl: PathBuf,
}

impl Manager {
    /// Finds the manager, by our environment.
    pub fn find(facts: &Facts) -> Result<Manager, Problem> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let listens = runtime.as_deref().is_some_and(manager_listens);
        match (listens, program("systemctl")) {
            (true, Some(systemctl)) => Ok(Manager { systemctl }),
            (_, None) => Err(no_systemd(facts)),
            (false, Some(_)) => Err(absent(facts, runtime, rustix::process::geteuid().as_raw())),
        }
    }

    /// Asks for something; returns what it says.
    pub fn ask(&self, words: &[&str], within: Duration) -> Result<String, Failure> {
        let said = format!("systemctl --user {}", words.join(" "));
        let mut command = Command::new(&self.systemctl);
        command.args(["--user", "--no-pager", "--no-ask-password"]).args(words).env("LC_ALL", "C");
        let failed = |why: String| Failure::failed("systemctl", anyhow::anyhow!("{said}: {why}"));
        let output = bounded(command, within).map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let words = words.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
        Err(failed(words.unwrap_or_else(|| output.status.to_string())))
    }

    /// Returns what it knows of a unit.
    pub fn status(&self, unit: &str) -> Result<UnitStatus, Failure> {
        let properties = "--property=LoadState,ActiveState,UnitFileState,MainPID,NeedDaemonReload,KillMode";
        Ok(UnitStatus::read(&self.ask(&["show", unit, properties], SOON)?))
    }
}

/// Says why there is no manager, and what to do instead.
fn absent(facts: &Facts, runtime: Option<PathBuf>, uid: u32) -> Problem {
    match runtime {
        _ if !facts.systemd => no_systemd(facts),
        None => Problem::new(
            "no_runtime_dir",
            "$XDG_RUNTIME_DIR is not set: your service manager does not know this login (su, sudo, cron)",
            format!(
                "loginctl enable-linger keeps it running without a login; then \
                 export XDG_RUNTIME_DIR=/run/user/{uid} and try again. Or run `rekindle serve` under a supervisor of \
                 your own that ends its main process only"
            ),
        ),
        Some(runtime) => Problem::new(
            "manager_silent",
            format!("your service manager does not listen in {}", runtime.display()),
            format!(
                "loginctl enable-linger starts it and keeps it running without a login; \
                 `systemctl status user@{uid}.service` says what became of it. Or run `rekindle serve` under a \
                 supervisor of your own that ends its main process only"
            ),
        ),
    }
}

fn no_systemd(facts: &Facts) -> Problem {
    if facts.container {
        return Problem::new(
            "container",
            "this is a container without systemd: there is no user service manager",
            "run `rekindle serve` as the container's main process, with an init in front of it (docker run --init) \
             and time to leave (--stop-timeout 30), and keep the home on a volume: agents end with the container, \
             and what was interrupted continues in the next",
        );
    }
    Problem::new(
        "no_systemd",
        "this machine does not run systemd: there is no user service manager",
        "run `rekindle serve` under a supervisor of your own, which must end its main process only and leave \
         the others alone; or let `rekindle run` start it in the background",
    )
}

/// What the manager knows of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitStatus {
    /// It has read the file.
    pub loaded: bool,
    /// `active`, `inactive`, `failed`, `activating`, `deactivating`.
    pub active: String,
    /// `enabled`, `disabled`, or something rarer.
    pub enabled: String,
    /// Its main process.
    pub main_pid: Option<u32>,
    /// The file has changed since it was read.
    pub needs_reload: bool,
    /// Target it ends when it is stopped: `process` is the main one alone. Settings beside the file may have changed that.
    pub kill_mode: String,
}

impl UnitStatus {
    fn read(text: &str) -> UnitStatus {
        let value = |name: &str| {
            let of = |line: &str| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
            text.lines().find_map(of).unwrap_or_default()
        };
        UnitStatus {
            loaded: value("LoadState") == "loaded",
            active: value("ActiveState"),
            enabled: value("UnitFileState"),
            main_pid: value("MainPID").parse().ok().filter(|pid| *pid != 0),
            needs_reload: value("NeedDaemonReload") == "yes",
            kill_mode: value("KillMode"),
        }
    }

    /// Tells whether whoever stops it ends everyone in its group.
    pub fn ends_everyone(&self) -> bool {
        self.loaded && !matches!(self.kill_mode.as_str(), "" | "process" | "none")
    }
}

/// Finds a program where programs are.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/bin"].map(PathBuf::from);
    let places = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).chain(usual);
    places.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Runs a command that says little, and ends it if it takes too long.
fn bounded(mut command: Command, within: Duration) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + within;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            let why = format!("no answer within {} seconds", within.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(LOOK);
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_manager_says_is_read_and_what_it_does_not_say_is_not_made_up() {
        let text = "MainPID=12\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\
                    NeedDaemonReload=no\nKillMode=mixed\n";
        let shown = UnitStatus::read(text);
        assert!(
            shown.ends_everyone()
                && !UnitStatus { kill_mode: "process".into(), ..shown.clone() }.ends_everyone()
        );
        assert_eq!((shown.main_pid, shown.loaded, shown.needs_reload), (Some(12), true, false));
        assert_eq!((shown.active.as_str(), shown.enabled.as_str()), ("active", "enabled"));
        let none = UnitStatus::read("MainPID=0\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n");
        assert_eq!((none.main_pid, none.loaded, none.enabled.as_str()), (None, false, ""));
        assert_eq!(UnitStatus::read(""), UnitStatus::default());
    }

    #[test]
    fn why_there_is_no_manager_is_told_by_what_is_the_case() {
        let machine = Facts { systemd: true, ..Facts::default() };
        let container = Facts { container: true, ..Facts::default() };
        let run = || Some(PathBuf::from("/run/user/7"));
        for (facts, runtime, code, word) in [
            (&container, None, "container", "--init"),
            (&container, run(), "container", "--stop-timeout"),
            (&Facts::default(), run(), "no_systemd", "supervisor"),
            (&machine, None, "no_runtime_dir", "/run/user/7"),
            (&machine, run(), "manager_silent", "enable-linger"),
        ] {
            let problem = absent(facts, runtime, 7);
            assert_eq!(problem.code, code);
            assert!(problem.remedy.contains(word), "{problem:?}");
        }
    }

    #[test]
    fn a_call_that_hangs_is_ended() {
        let mut hangs = Command::new("sleep");
        hangs.arg("1000");
        let begin = Instant::now();
        let error = bounded(hangs, Duration::from_millis(50)).expect_err("it hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}
