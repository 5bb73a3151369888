//! Holders to measure, and processes of raw programs. All of them end with their guards, whatever goes wrong; if we
//! are killed ourselves, holders end because nobody comes back, the others because their input ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rekindle_holder::client::{self, Control, Executable, Follower, Prepared, Spec};
use rekindle_holder::dir::{HolderDir, Limits};
use rekindle_holder::journal::Item;
use rekindle_holder::wire::{Event, Mode};
use rekindle_lab::Process;
use tempfile::TempDir;

use crate::actors;
use crate::context::Context;
pub(crate) use crate::context::PATIENCE;

/// How long each step of an agent's end may take.
const GRACE: Duration = Duration::from_secs(1);

/// How long a holder waits for us to come back.
const DETACHED: Duration = Duration::from_secs(600);

/// A place for holders, and what they run.
pub(crate) struct Rig {
    home: TempDir,
    /// Elsewhere, because the kernel takes only short paths of sockets.
    sockets: TempDir,
    executable: Executable,
    agent: Vec<String>,
}

impl Rig {
    pub(crate) fn new(context: &Context) -> anyhow::Result<Rig> {
        let home = context.directory()?;
        let sockets = tempfile::Builder::new().prefix("rk-").tempdir().context("no place for sockets")?;
        let executable = client::install_executable(&executable()?, &home.path().join("bin"))?;
        Ok(Rig { home, sockets, executable, agent: actors::agent_command()? })
    }

    /// Returns a directory for the files of raw programs.
    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Returns a new path for a raw program's socket.
    pub(crate) fn socket(&self, number: usize) -> PathBuf {
        self.sockets.path().join(format!("raw-{number}"))
    }

    /// Makes the directory of a holder.
    pub(crate) fn prepare(&self) -> anyhow::Result<Prepared> {
        let spec = Spec {
            session_id: "ses_bench".into(),
            attempt: 1,
            agent: None,
            profile: "bench".into(),
            argv: self.agent.clone(),
            cwd: self.home.path().to_owned(),
            env_names: Vec::new(),
            umask: None,
            limits: Limits { detached_ms: DETACHED.as_millis() as u64, ..Limits::default() },
        };
        let mut prepared =
            client::prepare(&self.home.path().join("holders"), self.sockets.path(), &self.executable, spec)?;
        prepared.ready_within = PATIENCE;
        Ok(prepared)
    }

    /// Starts the process of a holder.
    pub(crate) fn start(&self, prepared: &Prepared) -> anyhow::Result<Holder> {
        let spawned = client::start(prepared)?;
        Ok(Holder { process: spawned.child.into(), dir: spawned.dir })
    }

    /// Makes a holder whose agent runs, commanded by us.
    pub(crate) fn hold(&self) -> anyhow::Result<(Holder, Commander)> {
        let holder = self.start(&self.prepare()?)?;
        let mut control = holder.connect(1)?;
        control.start(BTreeMap::new())?;
        let commander = Commander::new(control, Follower::new(&holder.dir, 1));
        Ok((holder, commander))
    }
}

/// Returns the holder's executable, which is built beside this one.
pub(crate) fn executable() -> anyhow::Result<PathBuf> {
    beside("rekindle-holder")
}

/// Returns an executable of the product, which is built beside this one.
pub(crate) fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this binary is")?;
    let path = own.with_file_name(name);
    ensure!(
        path.is_file(),
        "{} is not there: build it with `cargo build --release -p rekindle --bin {name}`",
        path.display()
    );
    Ok(path)
}

/// A holder that ends with us.
pub(crate) struct Holder {
    process: Process,
    pub(crate) dir: HolderDir,
}

impl Holder {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Takes command of it.
    pub(crate) fn connect(&self, epoch: u64) -> anyhow::Result<Control> {
        Ok(Control::connect(&self.dir, Mode::Control, &instance(epoch), epoch, PATIENCE)?)
    }

    /// Ends its agent and it, and waits for that.
    pub(crate) fn end(mut self, mut control: Control) -> anyhow::Result<()> {
        control.stop("measured", "bench", GRACE)?;
        // It hangs up when it ends.
        while let Ok(told) = control.next_event(PATIENCE) {
            ensure!(told.is_some(), "a holder did not end");
        }
        let status = self.process.wait()?;
        ensure!(status.success(), "a holder failed: {status}");
        std::fs::remove_dir_all(self.dir.path()).context("cannot remove a holder's directory")
    }
}

/// Names a supervisor: a new one for each epoch, as after a restart.
pub(crate) fn instance(epoch: u64) -> String {
    format!("bench_{epoch}")
}

/// A supervisor that follows what the agent writes.
pub(crate) struct Commander {
    pub(crate) control: Control,
    follower: Follower,
    inputs: u64,
}

impl Commander {
    pub(crate) fn new(control: Control, follower: Follower) -> Commander {
        Commander { control, follower, inputs: 0 }
    }

    /// Tells the agent to write something.
    pub(crate) fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        self.inputs += 1;
        self.control.input(self.inputs, "prompt", command.as_bytes())?;
        Ok(())
    }

    /// Waits to be woken and reads what is there; each line is given on when it has been read, and everything is
    /// acknowledged.
    pub(crate) fn follow(&mut self, mut line: impl FnMut(&[u8])) -> anyhow::Result<()> {
        loop {
            match self.control.next_event(PATIENCE)? {
                Some(Event::Wake { .. }) => break,
                Some(Event::Exited { .. }) => bail!("the agent ended"),
                Some(_) => {}
                None => bail!("nothing came from the holder"),
            }
        }
        while let Some(item) = self.follower.next_item()? {
            if let Item::Line { bytes, .. } = item {
                line(&bytes);
            }
        }
        Ok(self.control.ack(self.follower.low() - 1)?)
    }

    /// Follows until so many lines have come, the greeting not counted.
    pub(crate) fn follow_lines(&mut self, count: usize) -> anyhow::Result<()> {
        let mut seen = 0;
        while seen < count {
            self.follow(|line| seen += usize::from(actors::is_line(line)))?;
        }
        Ok(())
    }
}
