//! A home with a real daemon in it, spoken to as any program would. Everything that was started ends with its guard; if
//! we are killed ourselves, a keeper that notices ends it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context as _;
use rekindle_domain::id::BootId;
use rekindle_holder::client::{LockState, inspect_all};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::{await_end, signal_exactly};
use rekindle_testkit::made::{Unsynced, Wanted, fill};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::actors;
use crate::context::Context;
use crate::ears::Ear;
use crate::home::open_on;
use crate::http::Link;
use crate::rig::{PATIENCE, Process, beside};

/// A home, and its daemon while there is one.
pub(crate) struct Lab {
    daemon: Option<Process>,
    socket: PathBuf,
    keeper: Process,
    dir: TempDir,
    /// Elsewhere, because the kernel takes only short paths of sockets.
    sockets: TempDir,
}

/// What the daemon says when it is ready.
#[derive(Deserialize)]
struct Ready {
    ready: Place,
}

/// What a daemon says of itself, also in its file.
#[derive(Deserialize)]
struct Place {
    socket: PathBuf,
    #[serde(default)]
    process: Option<Identity>,
}

impl Lab {
    /// Makes an empty place without a daemon.
    pub(crate) fn without_daemon(context: &Context) -> anyhow::Result<Lab> {
        let dir = context.directory()?;
        let sockets = tempfile::Builder::new().prefix("rk-").tempdir().context("no place for sockets")?;
        fs::create_dir(dir.path().join("work"))?;
        let mut keeper = actors::keeper_process(&dir.path().join("home"))?;
        // Not in our group: what a terminal sends to all of us must not end it too.
        let keeper = Process::spawn(keeper.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0))?;
        Ok(Lab { daemon: None, socket: PathBuf::new(), keeper, dir, sockets })
    }

    /// Makes a place with a daemon.
    pub(crate) fn new(context: &Context) -> anyhow::Result<Lab> {
        let mut lab = Lab::without_daemon(context)?;
        lab.start()?;
        Ok(lab)
    }

    /// Makes a place with sessions that have ended, and no daemon.
    pub(crate) fn with_sessions(context: &Context, count: usize) -> anyhow::Result<Lab> {
        let lab = Lab::without_daemon(context)?;
        crate::context::progress(&format!("making {count} sessions"));
        let store = open_on(Arc::new(Unsynced), &lab.home())?;
        let wanted = Wanted { sessions: count as u64, records: 5, seed: 1, finished: true };
        fill(&store, BootId::mint(0, 1), 0, &wanted).context("the sessions could not be made")?;
        Ok(lab)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns a command of the product in this home.
    pub(crate) fn rekindle(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(beside("rekindle")?);
        command.arg("--home").arg(self.home()).args(arguments).current_dir(self.dir.path().join("work"));
        command.env("XDG_RUNTIME_DIR", self.sockets.path()).env("HOME", self.dir.path());
        command.env_remove("REKINDLE_HOME").env_remove("REKINDLE_LOG").stdin(Stdio::null());
        Ok(command)
    }

    /// Starts a daemon and waits until it listens.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.serve(&[])
    }

    /// Stops the daemon in its tracks, as a debugger would, so that it can be replaced.
    pub(crate) fn freeze(&self) -> anyhow::Result<()> {
        signal_exactly(&Identity::of(self.id()? as i32)?, Signal::STOP)?;
        Ok(())
    }

    /// Starts a daemon in the place of one that does not leave by itself, and waits until it listens.
    pub(crate) fn take_over(&mut self) -> anyhow::Result<()> {
        // It is the new daemon that has to end it, not our guard.
        let replaced = self.daemon.take();
        let taken = self.serve(&["--takeover"]);
        drop(replaced);
        taken
    }

    fn serve(&mut self, arguments: &[&str]) -> anyhow::Result<()> {
        let log = self.dir.path().join("daemon.log");
        let file = fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = self.rekindle(&["serve", "--background"])?;
        command.args(arguments);
        let mut daemon = Process::spawn(command.stdout(Stdio::piped()).stderr(file))?;
        let pipe = daemon.child().stdout.take().context("the daemon has no output")?;
        self.daemon = Some(daemon);
        let mut line = String::new();
        BufReader::new(pipe).read_line(&mut line)?;
        let ready: Ready = serde_json::from_str(&line).with_context(|| {
            format!("the daemon is not ready: {line}{}", fs::read_to_string(&log).unwrap_or_default())
        })?;
        self.socket = ready.ready.socket;
        Ok(())
    }

    fn daemon(&self) -> anyhow::Result<&Process> {
        self.daemon.as_ref().context("there is no daemon")
    }

    /// Returns the daemon's process id.
    pub(crate) fn id(&self) -> anyhow::Result<u32> {
        Ok(self.daemon()?.id())
    }

    /// Kills the daemon without a word.
    pub(crate) fn kill(&mut self) {
        self.daemon = None;
    }

    /// Asks the daemon to leave, and waits for that.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        let daemon = self.daemon.take().context("there is no daemon")?;
        signal_exactly(&Identity::of(daemon.id() as i32)?, Signal::TERM)?;
        daemon.finish()
    }

    pub(crate) fn link(&self) -> anyhow::Result<Link> {
        Link::connect(&self.socket)
    }

    pub(crate) fn ear(&self, session: &str) -> anyhow::Result<Ear> {
        Ear::open(&self.socket, session)
    }

    /// Makes a session with our own agent and returns its id.
    pub(crate) fn session(&self, link: &mut Link, prompt: Option<&str>) -> anyhow::Result<String> {
        let agent = json!({"profile": "acp", "command": actors::chatter_command()?});
        let mut body = json!({"working_dir": self.dir.path().join("work"), "agent": agent});
        if let Some(prompt) = prompt {
            body["prompt"] = json!(prompt);
        }
        let made = link.ask("POST", "/api/sessions", &body.to_string())?.expect(201)?.json()?;
        Ok(text(&made, "id")?.to_owned())
    }

    /// Makes a session whose agent has had a turn and is ready for the next one, and someone who listens to it.
    pub(crate) fn warm_session(&self, link: &mut Link) -> anyhow::Result<(String, Ear)> {
        let session = self.session(link, Some(&crate::chatter::say(0, std::time::Duration::ZERO)))?;
        let mut ear = self.ear(&session)?;
        ear.turn(|_, _| Ok(()))?;
        Ok((session, ear))
    }
}

/// Returns a text of an answer.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value[name].as_str().with_context(|| format!("the daemon does not say {name}"))
}

/// Returns a request that gives a session a message.
pub(crate) fn message(session: &str, prompt: &str) -> String {
    let path = format!("/api/sessions/{session}/messages");
    crate::http::request("POST", &path, &json!({"content": prompt}).to_string())
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.daemon = None;
        sweep(&self.home());
        // It has nothing left to do.
        let _ = self.keeper.child().kill();
    }
}

/// Ends a home's daemon and every holder, and with it its agent.
fn sweep(home: &Path) {
    let place = fs::read(home.join("daemon.json")).ok();
    let place: Option<Place> = place.and_then(|place| serde_json::from_slice(&place).ok());
    let holders = || inspect_all(&home.join("holders")).unwrap_or_default().into_iter();
    let held = holders().filter_map(|seen| match seen.lock {
        LockState::Held { note, .. } => note.map(|note| note.process),
        _ => None,
    });
    // The daemon first, so that it begins nothing new.
    let all: Vec<Identity> = place.and_then(|place| place.process).into_iter().chain(held).collect();
    for process in &all {
        let _ = signal_exactly(process, Signal::KILL);
    }
    for process in &all {
        let _ = await_end(process, PATIENCE);
    }
}

/// Waits for the end of whoever started us, and ends what it left.
pub(crate) fn keep(home: &Path) -> anyhow::Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    // Twice: a daemon may have been about to start one.
    sweep(home);
    sweep(home);
    Ok(())
}
