//! Asking an agent who it is, and what a session of it can be set to: it is started, greeted, and ended again, with
//! everything it started.
//!
//! The only place in this crate that runs a process. Bounded in time, in what is read, and in how long an end
//! may take; the process leads a group of its own, which is ended as a whole.

mod concurrent;
mod stderr_tail;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rekindle_domain::event::Raw;
use rekindle_holder::descriptors::wait_readable;
use rekindle_holder::journal::OutFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use schemars::JsonSchema;
use serde::Serialize;

use crate::acp::{Offered, SessionOptions};
use crate::json::{Object, to_raw};
use crate::known::{Quirks, quirks};
use crate::profile::{Capabilities, Open, Profile};
use crate::said::{Failure, Greeting, Request, Said};

pub use self::concurrent::probe_all;
use self::stderr_tail::StderrTail;

/// How long an agent may take to answer: the slowest known one needs 30 s at its very first start.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// How much it may say before it answers: banners are short, an agent that floods is none.
const MAX_OUTPUT: usize = 4 << 20;

/// The numbers of our two requests.
const GREETING: u64 = 1;
const SESSION: u64 = 2;

/// What to start, and where.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its whole environment; nothing else is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// Whether it is asked for a session too, in its directory: only then is it known which modes and models it offers.
    pub session: bool,
}

/// What an agent said of itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "AgentProbe")]
pub struct Probed {
    /// Its name for itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The protocol's version that it speaks.
    pub protocol: u64,
    /// What can be done with it.
    pub can: Capabilities,
    /// Its capabilities, verbatim.
    #[schemars(with = "Option<serde_json::Value>")]
    pub capabilities: Option<Raw<'static>>,
    /// How one signs in, verbatim.
    #[schemars(with = "Option<serde_json::Value>")]
    pub auth_methods: Option<Raw<'static>>,
    /// What it is known to do that others do not.
    #[schemars(with = "Vec<String>")]
    pub quirks: Quirks,
    /// How long it took to answer.
    pub millis: u64,
    /// What a session of it can be set to, if it was asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers: Option<Offers>,
}

/// What a session of an agent can be set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AgentOffers")]
pub struct Offers {
    /// Its modes.
    pub modes: Vec<Offered>,
    /// Its models.
    pub models: Vec<Offered>,
}

/// Why an agent could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is nothing to start.
    #[error("the command is empty")]
    NoCommand,
    /// It cannot be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It cannot be spoken with.
    #[error("cannot talk to the agent")]
    Pipe(#[source] std::io::Error),
    /// It ended.
    #[error("the agent ended before it answered")]
    Ended,
    /// It did not answer.
    #[error("the agent did not answer within {0:?}")]
    Silent(Duration),
    /// It said too much that was no answer.
    #[error("the agent wrote {MAX_OUTPUT} bytes without an answer")]
    Flood,
    /// It refused.
    #[error("the agent refused the first request (initialize)")]
    Refused(#[source] Failure),
    /// It makes no session.
    #[error("the agent cannot create a session, so it is not known what it offers")]
    NoSession(#[source] Failure),
}

/// A probe that failed, with what the agent wrote to stderr.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ProbeFailure {
    /// Why.
    #[source]
    pub error: ProbeError,
    /// The end of its stderr; empty if it wrote nothing.
    pub stderr: String,
}

impl ProbeFailure {
    /// Returns the reason with its cause, and the agent's own last lines: these mostly say what is missing.
    pub fn text(&self) -> String {
        let cause = std::error::Error::source(&self.error).map(|cause| format!(": {cause}"));
        let told = format!("{}{}", self.error, cause.unwrap_or_default());
        if self.stderr.is_empty() { told } else { format!("{told}; its stderr ends with: {}", self.stderr) }
    }
}

impl From<ProbeError> for ProbeFailure {
    fn from(error: ProbeError) -> ProbeFailure {
        ProbeFailure { error, stderr: String::new() }
    }
}

impl Probe {
    /// Starts the agent, greets it, asks it for a session if that is wanted, and ends it.
    pub fn run(&self, profile: &dyn Profile) -> Result<Probed, ProbeFailure> {
        let (program, args) = self.command.split_first().ok_or(ProbeError::NoCommand)?;
        let begun = Instant::now();
        let child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| ProbeError::Start { program: program.clone(), source })?;
        let mut child = child;
        let stderr = child.stderr.take().map(StderrTail::read);
        let probed = self.ask(&mut child, profile, begun);
        end_group(child);
        probed.map_err(|error| {
            let stderr = stderr.map(|tail| tail.take(GRACE)).unwrap_or_default();
            ProbeFailure { error, stderr }
        })
    }

    fn ask(&self, child: &mut Child, profile: &dyn Profile, begun: Instant) -> Result<Probed, ProbeError> {
        let greeting = profile.greet(GREETING).ok_or(ProbeError::NoCommand)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.as_mut(), child.stdout.as_mut()) else {
            return Err(ProbeError::Ended);
        };
        let mut lines = Lines { stdout, buffer: Vec::new(), total: 0, begun, timeout: self.timeout };
        // Both are shorter than any pipe, so writing them cannot block.
        stdin.write_all(&greeting.line).map_err(ProbeError::Pipe)?;
        let mut probed = lines.find(|line| greeted_in(line, profile, begun))??;
        if self.session {
            let directory = self.directory.to_string_lossy();
            let open = profile.open(SESSION, Open::New, &directory).ok_or(ProbeError::NoCommand)?;
            stdin.write_all(&open.line).map_err(ProbeError::Pipe)?;
            probed.offers = Some(lines.find(|line| offers_in(line, profile))??);
        }
        Ok(probed)
    }
}

/// Asks a group to end, gives it a moment, ends it, and reaps its leader: until then its number, and the group's, belong to nobody
/// else.
fn end_group(mut leader: Child) {
    drop(leader.stdin.take());
    let group = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal(Signal::TERM);
    if let Some(stdout) = &mut leader.stdout {
        let deadline = Instant::now() + GRACE;
        let mut rest = [0; 4096];
        // Its end closes its output.
        while wait_readable(&*stdout, deadline).is_ok_and(|ready| ready)
            && stdout.read(&mut rest).is_ok_and(|count| count > 0)
        {}
    }
    let _ = signal(Signal::KILL);
    let _ = leader.wait();
}

/// What an agent says, line by line.
struct Lines<'a> {
    stdout: &'a mut ChildStdout,
    buffer: Vec<u8>,
    total: usize,
    begun: Instant,
    timeout: Duration,
}

impl Lines<'_> {
    /// Reads until something is found in a line.
    fn find<T>(&mut self, mut pick: impl FnMut(&str) -> Option<T>) -> Result<T, ProbeError> {
        let mut chunk = [0; 64 << 10];
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(found) = pick(&String::from_utf8_lossy(&line)) {
                    return Ok(found);
                }
            }
            if self.total > MAX_OUTPUT {
                return Err(ProbeError::Flood);
            }
            if !wait_readable(&*self.stdout, self.begun + self.timeout).map_err(ProbeError::Pipe)? {
                return Err(ProbeError::Silent(self.timeout));
            }
            let count = self.stdout.read(&mut chunk).map_err(ProbeError::Pipe)?;
            if count == 0 {
                return Err(ProbeError::Ended);
            }
            self.buffer.extend_from_slice(&chunk[..count]);
            self.total += count;
        }
    }
}

fn greeted_in(line: &str, profile: &dyn Profile, begun: Instant) -> Option<Result<Probed, ProbeError>> {
    let asked = |number| (number == GREETING).then_some(Request::Greet);
    let said = profile.parse_line(line, OutFlags::default(), &asked);
    said.into_iter().find_map(|said| match said {
        Said::Greeted(_, greeting) => Some(Ok(probed(profile, &greeting, begun))),
        Said::Refused { failure, .. } => Some(Err(ProbeError::Refused(failure))),
        _ => None,
    })
}

fn offers_in(line: &str, profile: &dyn Profile) -> Option<Result<Offers, ProbeError>> {
    let asked = |number| (number == SESSION).then_some(Request::New);
    let said = profile.parse_line(line, OutFlags::default(), &asked);
    said.into_iter().find_map(|said| match said {
        Said::Opened { options, .. } => {
            let options = options.and_then(|raw| SessionOptions::parse(raw.get())).unwrap_or_default();
            Some(Ok(Offers { modes: options.modes(), models: options.models() }))
        }
        Said::Refused { failure, .. } => Some(Err(ProbeError::NoSession(failure))),
        _ => None,
    })
}

fn probed(profile: &dyn Profile, greeting: &Greeting<'_>, begun: Instant) -> Probed {
    let info = greeting.info.and_then(|raw| Object::parse(raw.get())).unwrap_or_default();
    let name = info.text("name").map(String::from);
    let version = info.text("version").map(String::from);
    Probed {
        quirks: name.as_deref().map(|name| quirks(name, version.as_deref())).unwrap_or_default(),
        name,
        version,
        protocol: greeting.version,
        can: profile.capabilities(greeting.capabilities.map(|raw| raw.get())),
        capabilities: greeting.capabilities.map(to_raw),
        auth_methods: greeting.auth_methods.map(to_raw),
        offers: None,
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}
