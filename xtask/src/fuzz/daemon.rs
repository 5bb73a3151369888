//! The daemon that is fuzzed: a home of its own in a directory of its own, and nothing on its PATH.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure, Result, ensure};

/// How long the daemon may take to end with its agents.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon, and where it lives.
pub(super) struct Daemon {
    program: PathBuf,
    directory: PathBuf,
    child: Child,
    kept: bool,
}

impl Daemon {
    /// Starts one and waits until it is ready.
    pub(super) fn start(program: &Path) -> Result<Daemon> {
        let directory = std::env::temp_dir().join(format!("rkfuzz-{}", std::process::id()));
        for name in ["work", "run", "state", "nothing"] {
            let place = directory.join(name);
            fs::create_dir_all(&place).context(|| format!("cannot make {}", place.display()))?;
        }
        let log = File::create(directory.join("daemon.log")).context(|| "cannot make the daemon's log")?;
        let mut command = ours(program, &directory);
        command.args(["serve", "--background"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context(|| "cannot start the daemon")?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let daemon = Daemon { program: program.to_owned(), directory, child, kept: false };
        ensure(line.contains("ready"), || format!("the daemon is not ready: {line}{}", daemon.log()))?;
        Ok(daemon)
    }

    /// Returns a place in its directory.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns where it listens.
    pub(super) fn socket(&self) -> Result<PathBuf> {
        let text =
            fs::read_to_string(self.place("home/daemon.json")).context(|| "cannot read daemon.json")?;
        let socket = text.split_once("\"socket\":\"").and_then(|(_, rest)| rest.split_once('"'));
        socket.map(|(socket, _)| socket.into()).ok_or_else(|| Failure::new("daemon.json names no socket"))
    }

    /// Returns the command of the only agent, as JSON.
    pub(super) fn agent(&self) -> String {
        let words = [
            &*self.program.to_string_lossy(),
            "demo-agent",
            "--state",
            &*self.place("state").to_string_lossy(),
        ]
        .map(|word| format!("{word:?}"));
        format!("[{}]", words.join(","))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place("daemon.log")).unwrap_or_default()
    }

    /// Looks whether it lives and is well.
    pub(super) fn check(&mut self) -> Result<()> {
        let log = self.log();
        let bad: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("panicked") || line.contains(" ERROR "))
            .take(20)
            .collect();
        if let Some(status) = self.child.try_wait()? {
            return Err(Failure::new(format!("the daemon ended: {status}\n{}", bad.join("\n"))));
        }
        ensure(bad.is_empty(), || format!("the daemon's log has errors:\n{}", bad.join("\n")))?;
        Ok(())
    }

    /// Ends it with all its agents, and says whether it went well.
    pub(super) fn stop(&mut self) -> Result<()> {
        let stop =
            ours(&self.program, &self.directory).args(["stop", "--all"]).stdout(Stdio::null()).status()?;
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure(begin.elapsed() < PATIENCE, || "the daemon does not end")?;
            thread::sleep(Duration::from_millis(20));
        }
        ensure(stop.success(), || format!("agents were left: {stop}"))?;
        Ok(())
    }

    /// Leaves what it made to be looked at.
    pub(super) fn keep(&mut self) {
        self.kept = true;
        println!("the home and daemon.log are in {}", self.directory.display());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) && self.stop().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if !self.kept {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Returns a command of ours that knows nothing of the world around.
fn ours(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", directory.join("nothing")).env("HOME", directory);
    command.env("XDG_RUNTIME_DIR", directory.join("run")).env("REKINDLE_LOG", "info");
    command.current_dir(directory).arg("--home").arg(directory.join("home"));
    command
}
