//! Starting the daemon in the background, and waiting for one to come or go. It says on a pipe when it is ready, or
//! why it is not; every wait has an end.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rekindle_holder::tree::MARK;
use rekindle_store::disk::RealDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use serde::{Deserialize, Serialize};

use super::daemon_file::{self, DaemonFile, DaemonState};
use super::{Client, unproven, unreachable};
use crate::failure::{Exit, Failure};
use crate::listen_options::Listening;
use crate::takeover;
use crate::unit::Unit;

/// Names the socket of whoever started a daemon as a service. It is the daemon's alone: an agent could say in its name that it
/// has ended.
pub const NOTIFY: &str = "NOTIFY_SOCKET";

/// How long a daemon may take to be ready: it completes the write-ahead log and lists the sessions before.
const READY: Duration = Duration::from_secs(30);

/// How long a daemon that owns the home already may take to say where it listens.
const LISTENING: Duration = Duration::from_secs(10);

/// How often it is looked whether a daemon came or went.
const LOOK: Duration = Duration::from_millis(20);

/// A daemon's log larger than this is put aside before the next one writes to it.
const MAX_LOG: u64 = 8 << 20;

/// What a daemon in the background says on its pipe, in one line, when it is ready.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Where it is.
    pub ready: DaemonFile,
    /// What is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Returns the daemon of a home; one is started if none lives.
pub fn ensure(home: &Path) -> Result<Client, Failure> {
    match Client::find(home)? {
        Some(client) => Ok(client),
        None => Client::at(home, start_again(home, None)?),
    }
}

/// Starts the daemon as a service if one is in charge of the home. A service that does not start keeps nobody from working.
fn start_service(home: &Path) -> Option<DaemonFile> {
    let (unit, manager) = Unit::in_charge(home)?;
    let started = unit.bring_up(&manager, "start");
    started
        .inspect_err(|failure| {
            let (why, words) = (failure.message(), unit.journal_hint());
            anstream::eprintln!("note: {why}; starting a daemon outside the service. {words}");
        })
        .ok()
}

/// Starts a daemon in the place of one that left, to listen where that one was told to; a service listens where its unit
/// says.
pub fn start_again(home: &Path, told: Option<&Listening>) -> Result<DaemonFile, Failure> {
    if let Some(place) = start_service(home) {
        return Ok(place);
    }
    let again = told.map(serde_json::to_string).transpose();
    let again = again.map_err(|error| Failure::failed("daemon_file", error))?;
    let arguments: Vec<&str> = again.iter().flat_map(|again| ["--again", again.as_str()]).collect();
    start_waiting(home, &arguments, &[])
}

/// Starts a daemon in the place of one that is there, which is ended if it does not leave.
pub fn take_over(home: &Path) -> Result<DaemonFile, Failure> {
    if let Some((unit, manager)) = Unit::in_charge(home) {
        takeover::make_way(home)?;
        return unit.bring_up(&manager, "restart");
    }
    try_start(home, &["--takeover"], &[])
}

/// Starts a daemon in the background, with arguments and variables of the caller's, and waits until it is ready. If someone else was
/// faster, that one is as good; if one is still leaving, it is waited for.
pub fn start_waiting(home: &Path, arguments: &[&str], env: &[(&str, &Path)]) -> Result<DaemonFile, Failure> {
    let failure = match try_start(home, arguments, env) {
        Err(failure) if failure.code() == "home_in_use" => failure,
        outcome => return outcome,
    };
    let deadline = Instant::now() + LISTENING;
    while Instant::now() < deadline {
        match daemon_file::find_daemon(home) {
            DaemonState::Lives(place) => return Ok(place),
            DaemonState::Cut(place) => return Err(unreachable(&place)),
            DaemonState::Unproven(place) => return Err(unproven(home, &place)),
            DaemonState::Leaves | DaemonState::Died | DaemonState::None => {}
        }
        if home::owner(&RealDisk, &Layout::new(home)).is_none() {
            return try_start(home, arguments, env);
        }
        std::thread::sleep(LOOK);
    }
    Err(failure)
}

/// Starts a daemon once, with arguments and variables of the caller's; one that owns the home already is a failure.
pub fn try_start(home: &Path, arguments: &[&str], env: &[(&str, &Path)]) -> Result<DaemonFile, Failure> {
    // A directory that is no home, and holds something else, is refused before anything is put into it.
    home::prepare(&RealDisk, &Layout::new(home))?;
    let cannot = |error: std::io::Error| {
        Failure::no_daemon(format!("the daemon cannot be started: {error}")).hint("try rekindle serve")
    };
    let log = open_log(home).map_err(cannot)?;
    let mut child = Command::new(std::env::current_exe().map_err(cannot)?)
        .arg("--home")
        .arg(home)
        .args(["serve", "--background"])
        .args(arguments)
        .current_dir(home)
        // An agent that starts a daemon must not take it along when its tree is ended.
        .env_remove(MARK)
        // Nor is it what whoever started us as a service waits for.
        .env_remove(NOTIFY)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(cannot)?;
    let line = child.stdout.take().and_then(|pipe| first_line(pipe, READY));
    let Some(line) = line.filter(|line| !line.trim().is_empty()) else {
        let words = last_log_line(home);
        return Err(Failure::no_daemon(format!("the daemon was started but is not ready{words}"))
            .hint(format!("its output is in {}", home.join("logs/daemon.log").display())));
    };
    match serde_json::from_str::<Ready>(&line) {
        Ok(Ready { ready, note }) => {
            if let Some(note) = note {
                anstream::eprintln!("note: {}", rekindle_terminal::sanitise::line(&note));
            }
            Ok(ready)
        }
        Err(_) => Err(Failure::refused(0, line.as_bytes()).exit_with(Exit::NoDaemon)),
    }
}

/// Waits for a daemon that comes after one that went away. One that died is replaced; one that left on purpose is
/// not, because someone may have wanted that.
pub fn successor(home: &Path, within: Duration) -> Result<DaemonFile, Failure> {
    let deadline = Instant::now() + within;
    loop {
        match daemon_file::find_daemon(home) {
            DaemonState::Lives(place) => return Ok(place),
            DaemonState::Died => return start_again(home, None),
            DaemonState::Unproven(place) => return Err(unproven(home, &place)),
            DaemonState::Cut(place) if Instant::now() >= deadline => return Err(unreachable(&place)),
            DaemonState::Leaves | DaemonState::None if Instant::now() >= deadline => {
                return Err(Failure::no_daemon("the daemon was stopped")
                    .hint("agents keep working; the next rekindle attach starts it again"));
            }
            DaemonState::Leaves | DaemonState::Cut(_) | DaemonState::None => std::thread::sleep(LOOK),
        }
    }
}

/// Waits until nobody owns a home; tells whether that came to be.
pub fn wait_until_free(home: &Path, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    let layout = Layout::new(home);
    loop {
        if home::owner(&RealDisk, &layout).is_none() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the path of a program that belongs beside this one.
pub fn beside_us(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::failed("executable", error))?;
    let path = own.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    let message = format!("{} is missing; it belongs next to this program", path.display());
    Err(Failure::failed("no_holder", anyhow::Error::msg(message))
        .hint("install both binaries; from the sources: cargo build -p rekindle --bins"))
}

fn open_log(home: &Path) -> std::io::Result<File> {
    let logs = home.join("logs");
    DirBuilder::new().recursive(true).mode(0o700).create(&logs)?;
    let path = logs.join("daemon.log");
    if path.metadata().is_ok_and(|metadata| metadata.len() > MAX_LOG) {
        std::fs::rename(&path, logs.join("daemon.log.1"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Returns the first line from a pipe; none if it ends or stays silent.
fn first_line(pipe: ChildStdout, within: Duration) -> Option<String> {
    let (tell, told) = mpsc::channel();
    // It ends with the pipe, at the latest with this process.
    std::thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(pipe).read_line(&mut line).is_ok() {
            let _ = tell.send(line);
        }
    });
    told.recv_timeout(within).ok()
}

/// Returns the last line of the daemon's log, as a cause.
fn last_log_line(home: &Path) -> String {
    let log = std::fs::read(home.join("logs/daemon.log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    log.lines().rev().find(|line| !line.trim().is_empty()).map(|line| format!(": {line}")).unwrap_or_default()
}
