//! Steps that misbehave: crashes, silence, noise, children left behind. Each is something a real agent was seen or
//! must be expected to do.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGTERM;

use super::{Stop, Turn};
use crate::script::Crash;
use crate::sessions::random_id;
use crate::wire::{chunk, line, update_message};
use crate::{BARRIERS_VARIABLE, Options};

/// How long a barrier waits for its test before it gives up.
const BARRIER_PATIENCE: Duration = Duration::from_secs(60);

/// How often a barrier looks.
const TICK: Duration = Duration::from_millis(2);

/// A line on stderr.
const STDERR_LINE: &[u8; 64] = b"demo-agent: nothing to see here, please move along, nothing....\n";

impl Turn {
    pub(super) fn crash(&mut self, crash: Crash) {
        match crash {
            Crash::Exit(code) => std::process::exit(code.into()),
            Crash::Signal => {
                let _ = kill_process(getpid(), Signal::KILL);
                // The signal is on its way.
                loop {
                    std::thread::park();
                }
            }
            // Looked for when the prompt comes in. Nothing is kept of answers here.
            Crash::Before | Crash::Kept => {}
            Crash::After => self.job.carried.crash_after = true,
            Crash::MidLine => {
                let update = chunk("agent_message_chunk", &random_id(), "a line that never ends");
                let line = line(&update_message(&self.job.session, update));
                let mut out = self.shared.wire.lock_output();
                let _ = out.write_all(&line.as_bytes()[..line.len() / 2]);
                std::process::exit(1);
            }
        }
    }

    pub(super) fn hang(&mut self) -> Result<(), Stop> {
        loop {
            self.wait(None)?;
        }
    }

    pub(super) fn poke(&mut self) -> Result<(), Stop> {
        while !std::mem::take(&mut self.poked) {
            self.wait(None)?;
        }
        Ok(())
    }

    pub(super) fn barrier(&mut self, name: &str) -> Result<(), Stop> {
        let go = reach_barrier(&self.shared.options, name).map_err(Stop::broken)?;
        let until = Instant::now() + BARRIER_PATIENCE;
        while !go.exists() {
            if Instant::now() >= until {
                return Err(Stop::broken(format!("nobody made {}", go.display())));
            }
            self.pause(TICK)?;
        }
        Ok(())
    }

    pub(super) fn stderr(&mut self, bytes: Option<u64>) -> Result<(), Stop> {
        let Some(mut left) = bytes else {
            let flood = || while io::stderr().write_all(STDERR_LINE).is_ok() {};
            let started = std::thread::Builder::new().name("stderr".into()).spawn(flood);
            return started.map(drop).map_err(Stop::broken);
        };
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(STDERR_LINE.len());
            // Nobody reads it any more: there is nobody left to flood.
            if io::stderr().write_all(&STDERR_LINE[..count]).is_err() {
                break;
            }
            left -= count as u64;
            self.check_signals()?;
        }
        Ok(())
    }

    /// Leaves a child behind and says its process id.
    pub(super) fn grandchild(&mut self, seconds: u64, detach: bool) -> Result<(), Stop> {
        let spawned = spawn_grandchild(&self.shared.linger_command, seconds, detach);
        let child = spawned.map_err(|error| Stop::broken(format!("no grandchild: {error}")))?;
        self.say(&format!("grandchild {}", child.id()))
    }
}

/// Ignores SIGTERM from now on: there is a handler for it, which does nothing.
pub(super) fn ignore_term() -> Result<(), Stop> {
    let ignored = signal_hook::flag::register(SIGTERM, Arc::default());
    ignored.map(drop).map_err(|error| Stop::broken(format!("SIGTERM cannot be ignored: {error}")))
}

/// Says at a barrier that it was reached; returns the file that lets it go on.
pub(crate) fn reach_barrier(options: &Options, name: &str) -> Result<PathBuf, String> {
    let variable = || std::env::var_os(BARRIERS_VARIABLE).filter(|value| !value.is_empty());
    let directory = options.barriers.clone().or_else(|| variable().map(PathBuf::from));
    let directory = directory.ok_or_else(|| format!("${BARRIERS_VARIABLE} is not set"))?;
    let reached = directory.join(format!("{name}.reached"));
    let made = fs::create_dir_all(&directory).and_then(|()| fs::write(&reached, ""));
    made.map_err(|error| format!("cannot make {}: {error}", reached.display()))?;
    Ok(directory.join(format!("{name}.go")))
}

/// Starts a child that outlives us. A detached one is only returned after it has left our session and pipes.
pub(crate) fn spawn_grandchild(command: &[OsString], seconds: u64, detach: bool) -> io::Result<Child> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::other("no command for it is known"));
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(seconds.to_string()).stdin(Stdio::null());
    if !detach {
        return command.spawn();
    }
    let mut child = command.arg("--detach").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut Vec::new())?;
    }
    Ok(child)
}
