//! Steps that misbehave: crashes, silence, noise, children left behind. Each is something a real agent was seen or
//! must be expected to do.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::{Stop, Turn};
use crate::handover::{self, Handover};
use crate::script::{Crash, Noise};
use crate::serve::Event;
use crate::sessions::random_id;
use crate::wire::{chunk, line, lock, update_message};
use crate::{BARRIERS_VARIABLE, Options};

/// How long a barrier waits for its test before it gives up.
const BARRIER_PATIENCE: Duration = Duration::from_secs(60);

/// How often a barrier looks.
const TICK: Duration = Duration::from_millis(2);

/// A line on stderr.
const STDERR_LINE: &[u8; 64] = b"demo-agent: nothing to see here, please move along, nothing....\n";

impl Turn {
    pub(super) fn crash(&mut self, crash: Crash) -> Result<(), Stop> {
        match crash {
            Crash::Exit(code) => std::process::exit(code.into()),
            Crash::Signal => {
                let _ = kill_process(getpid(), Signal::KILL);
                // The signal is on its way.
                loop {
                    std::thread::park();
                }
            }
            // Looked for when the prompt comes in.
            Crash::Before => Ok(()),
            Crash::After => {
                self.job.carried.crash_after = true;
                Ok(())
            }
            Crash::MidLine => {
                let update = chunk("agent_message_chunk", &random_id(), "a line that never ends");
                let line = line(&update_message(&self.job.session, update));
                let mut out = self.shared.wire.hold();
                let _ = out.write_all(&line.as_bytes()[..line.len() / 2]);
                std::process::exit(1);
            }
        }
    }

    pub(super) fn noise(&mut self, noise: &Noise) -> Result<(), Stop> {
        let bytes: Vec<u8> = match noise {
            Noise::Text(text) => format!("{text}\n").into(),
            Noise::Binary => b"\x00\x01\xfe\xff{\xc3\x28}\x80\n".into(),
            Noise::Blank => b"\n".into(),
            Noise::Escape => b"\x1b]0;agent\x07\x1b[31mred\x1b[0m\x1b[2J\r\n".into(),
            Noise::String => b"\"just a string\"\n".into(),
        };
        self.shared.wire.raw(&bytes);
        Ok(())
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
        let failed = |text: String| Stop::Failed(-32603, text);
        let directory = barriers(&self.shared.options);
        let directory = directory.ok_or_else(|| failed(format!("${BARRIERS_VARIABLE} is not set")))?;
        let (reached, go) = (directory.join(format!("{name}.reached")), directory.join(format!("{name}.go")));
        let made = fs::create_dir_all(&directory).and_then(|()| fs::write(&reached, ""));
        made.map_err(|error| failed(format!("cannot make {}: {error}", reached.display())))?;
        let until = Instant::now() + BARRIER_PATIENCE;
        while !go.exists() {
            if Instant::now() >= until {
                return Err(failed(format!("nobody made {}", go.display())));
            }
            self.pause(TICK)?;
        }
        Ok(())
    }

    pub(super) fn stderr(&mut self, bytes: Option<u64>) -> Result<(), Stop> {
        let Some(mut left) = bytes else {
            let flood = || while io::stderr().write_all(STDERR_LINE).is_ok() {};
            let started = std::thread::Builder::new().name("stderr".into()).spawn(flood);
            return started.map(drop).map_err(|error| Stop::Failed(-32603, error.to_string()));
        };
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(STDERR_LINE.len());
            // Nobody reads it any more: there is nobody left to flood.
            if io::stderr().write_all(&STDERR_LINE[..count]).is_err() {
                break;
            }
            left -= count as u64;
            self.breathe()?;
        }
        Ok(())
    }

    /// Leaves a child behind and says its process id.
    pub(super) fn grandchild(&mut self, seconds: u64, detach: bool) -> Result<(), Stop> {
        let spawned = spawn_grandchild(&self.shared.options, seconds, detach);
        let child = spawned.map_err(|error| Stop::Failed(-32603, format!("no grandchild: {error}")))?;
        self.say(&format!("grandchild {}", child.id()))
    }

    /// Hands this turn to an image of the process that ignores SIGTERM.
    pub(super) fn ignore_term(&mut self, at: usize) -> Result<(), Stop> {
        let mut job = self.job.clone();
        job.from = at + 1;
        let process = lock(&self.shared.process).clone();
        let open = self.shared.sessions.all_open();
        let handover = Handover { job, process, open, lines: Vec::new(), torn: Vec::new() };
        let (failed, failure) = channel();
        let _ = self.shared.events.send(Event::Deafen(Box::new(handover), failed));
        // If all goes well, this thread is gone before there is anything to receive.
        Err(Stop::Failed(-32603, failure.recv().unwrap_or_default()))
    }
}

/// Returns where barriers are.
pub(crate) fn barriers(options: &Options) -> Option<PathBuf> {
    let variable = || std::env::var_os(BARRIERS_VARIABLE).filter(|value| !value.is_empty());
    options.barriers.clone().or_else(|| variable().map(PathBuf::from))
}

/// Starts a child that outlives us. A detached one is only returned after it has left our session and pipes.
fn spawn_grandchild(options: &Options, seconds: u64, detach: bool) -> io::Result<Child> {
    let [program, arguments @ ..] = &options.linger_command[..] else {
        return Err(io::Error::other("no command for it is known"));
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(seconds.to_string()).env_remove(handover::VARIABLE).stdin(Stdio::null());
    if !detach {
        return command.spawn();
    }
    let mut child = command.arg("--detach").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut Vec::new())?;
    }
    Ok(child)
}
