//! Processes that end with their guards: any child, and a daemon that says when it is ready.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;

use crate::wait::{PATIENCE, look_for};

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(2);

/// A child that is killed and collected when dropped.
pub struct Process(Child);

impl Process {
    /// Starts one.
    pub fn spawn(command: &mut Command) -> io::Result<Process> {
        let spawned = command.spawn();
        let cannot =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot run {command:?}: {error}"));
        spawned.map(Process).map_err(cannot)
    }

    /// Returns its input, which was piped.
    pub fn take_input(&mut self) -> io::Result<ChildStdin> {
        self.0.stdin.take().ok_or_else(|| io::Error::other("the process has no input"))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        signal_exactly(&Identity::of(self.0.id().cast_signed())?, signal).map(drop)
    }

    /// Waits for the end of a process that ends by itself, for as long as anything may take.
    pub fn await_end(&mut self) -> io::Result<ExitStatus> {
        let ended = look_for(PATIENCE, LOOK, || self.0.try_wait().transpose());
        ended.unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::TimedOut, "a process does not end")))
    }

    /// Waits for the end of a process that has been told to end, and must not fail.
    pub fn finish(mut self) -> io::Result<()> {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("a process failed: {status}"))) }
    }
}

impl From<Child> for Process {
    fn from(child: Child) -> Process {
        Process(child)
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Of one that was collected already nothing is left to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon that is killed when dropped. Its holders and agents live on: they end with their home.
pub struct Daemon {
    process: Process,
    log: PathBuf,
}

impl Daemon {
    /// Starts one by a command that serves in the background, and does not wait for it. What it says is added to a log.
    pub fn spawn(mut command: Command, log: &Path) -> io::Result<Daemon> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let process = Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file))?;
        Ok(Daemon { process, log: log.to_owned() })
    }

    /// Starts one and waits until it is ready.
    pub fn start(command: Command, log: &Path) -> io::Result<Daemon> {
        let mut daemon = Daemon::spawn(command, log)?;
        let line = daemon.first_line()?;
        if line.contains("ready") {
            return Ok(daemon);
        }
        let log = std::fs::read_to_string(&daemon.log).unwrap_or_default();
        Err(io::Error::other(format!("the daemon is not ready: {line}{log}")))
    }

    /// Waits for the line that it says once it is ready or knows that it will not be; an empty one if it ended.
    pub fn first_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if let Some(pipe) = self.process.stdout.take() {
            BufReader::new(pipe).read_line(&mut line)?;
        }
        Ok(line)
    }

    /// Asks it to leave, and waits for that.
    pub fn leave(mut self) -> io::Result<ExitStatus> {
        self.process.signal(Signal::TERM)?;
        self.process.await_end()
    }
}

impl Deref for Daemon {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Daemon {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
