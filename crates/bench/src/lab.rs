//! A home with a real daemon in it, spoken to as any program would. Everything that was started ends with its guard; if
//! we are killed ourselves, a keeper that notices ends it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rekindle_domain::id::BootId;
use rekindle_domain::time::Clock;
use rekindle_lab::{Connection, Daemon, HOST, Process, TempHome, daemon_file, end_all};
use rekindle_testkit::made::{Wanted, fill};
use rekindle_testkit::tapped::{Tapped, Unsynced};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::actors;
use crate::context::Context;
use crate::ears::Ear;
use crate::home::{WallClock, open_on};
use crate::rig::beside;

/// The configuration of daemons, where there is one.
const CONFIG: &str = "daemon.toml";

/// A home, and its daemon while there is one.
pub(crate) struct Lab {
    daemon: Option<Daemon>,
    temp: TempHome,
    /// Outlives the home, as it has to if we are killed; then it has nothing left to do.
    _keeper: Process,
}

impl Lab {
    /// Makes an empty place without a daemon.
    pub(crate) fn without_daemon(context: &Context) -> anyhow::Result<Lab> {
        let temp = TempHome::below(context.path(), "lab-")?;
        let mut keeper = actors::keeper_process(&temp.home())?;
        // Not in our group: what a terminal sends to all of us must not end it too.
        let keeper = Process::spawn(keeper.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0))?;
        Ok(Lab { daemon: None, temp, _keeper: keeper })
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
        let store = open_on(Arc::new(Tapped(Unsynced)), &lab.home())?;
        let wanted = Wanted { sessions: count as u64, records: 5, seed: 1, finished: true };
        fill(&store, BootId::mint(0, 1), 0, &wanted).context("the sessions could not be made")?;
        Ok(lab)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.temp.home()
    }

    /// Returns a command of the product in this home.
    pub(crate) fn rekindle(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = self.temp.command(&beside("rekindle")?);
        command.args(arguments).env_remove("REKINDLE_LOG").stdin(Stdio::null());
        Ok(command)
    }

    /// Has daemons from now on read this as their configuration.
    pub(crate) fn configure(&self, config: &str) -> anyhow::Result<()> {
        std::fs::write(self.temp.at(CONFIG), config).context("cannot write a configuration")
    }

    /// Starts a daemon and waits until it listens.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.serve(&[])
    }

    /// Stops the daemon in its tracks, as a debugger would, so that it can be replaced.
    pub(crate) fn freeze(&self) -> anyhow::Result<()> {
        Ok(self.daemon()?.signal(Signal::STOP)?)
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
        let mut command = self.rekindle(&["serve", "--background"])?;
        command.args(arguments);
        let config = self.temp.at(CONFIG);
        if config.exists() {
            command.env("REKINDLE_CONFIG", config);
        }
        self.daemon = Some(Daemon::start(command, &self.temp.at("daemon.log"))?);
        Ok(())
    }

    fn daemon(&self) -> anyhow::Result<&Daemon> {
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
        let left = self.daemon.take().context("there is no daemon")?.leave()?;
        ensure!(left.success(), "the daemon failed: {left}");
        Ok(())
    }

    pub(crate) fn link(&self) -> anyhow::Result<Connection> {
        let place = daemon_file(&self.home());
        Connection::open(Path::new(text(&place, "socket")?)).context("cannot connect to the daemon")
    }

    pub(crate) fn ear(&self, session: &str) -> anyhow::Result<Ear> {
        Ear::open(self.link()?, session)
    }

    /// Makes a session with our own agent and returns its id.
    pub(crate) fn session(&self, link: &mut Connection, prompt: Option<&str>) -> anyhow::Result<String> {
        let agent = json!({"profile": "acp", "command": actors::chatter_command()?});
        // What is measured is the daemon, not a directory.
        let mut body = json!({"working_dir": self.temp.at("work"), "agent": agent, "checkpoints": "off"});
        if let Some(prompt) = prompt {
            body["prompt"] = json!(prompt);
        }
        let made = link.ask("POST", "/api/sessions", "", &body.to_string())?.expect(201)?.json()?;
        Ok(text(&made, "id")?.to_owned())
    }

    /// Asks for tasks that wait until tomorrow.
    pub(crate) fn queue_tasks(&self, link: &mut Connection, count: usize) -> anyhow::Result<()> {
        let agent = json!({"profile": "acp", "command": actors::chatter_command()?});
        let tomorrow = WallClock.now().plus_millis(24 * 60 * 60 * 1000);
        let task = |n: usize| {
            let work = self.temp.at("work");
            json!({"working_dir": work, "agent": agent, "prompt": format!("task {n}"), "not_before": tomorrow})
        };
        let body = json!({"tasks": (0..count).map(task).collect::<Vec<_>>()});
        link.ask("POST", "/api/tasks", "", &body.to_string())?.expect(201)?;
        Ok(())
    }

    /// Makes a session whose agent has had a turn and is ready for the next one, and someone who listens to it.
    pub(crate) fn warm_session(&self, link: &mut Connection) -> anyhow::Result<(String, Ear)> {
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
    rekindle_lab::request("POST", &path, HOST, &json!({"content": prompt}).to_string())
}

/// Waits for the end of whoever started us, and ends what it left.
pub(crate) fn keep(home: &Path) -> anyhow::Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    // Twice: a daemon may have been about to start one.
    end_all(home);
    end_all(home);
    Ok(())
}
