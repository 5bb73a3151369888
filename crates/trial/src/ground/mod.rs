//! The ground of a demonstration or a self-test: a temporary directory with a home, and whoever lives in it. When it goes
//! away every process that was started there is ended, and nothing is left of it unless it is to be kept.

pub(super) mod look;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rekindle_client::clock::random;
use rekindle_client::failure::Failure;
use rekindle_holder::client::{Found, Keeper, LockState, inspect_all};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::{Tree, await_end, signal_exactly};
use rekindle_store::disk::RealDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

/// How long a process may take to be gone once it was killed.
const DIES_WITHIN: Duration = Duration::from_secs(5);

/// How long whoever is just being started may take to show itself, so that it can be ended.
const APPEARS_WITHIN: Duration = Duration::from_secs(1);

/// How often it is looked who is left.
const LOOK: Duration = Duration::from_millis(10);

/// Above this a directory is too deep for the sockets below it, whose paths have about a hundred bytes.
const DEEPEST: usize = 48;

/// A temporary directory.
pub(super) struct Ground {
    path: PathBuf,
    /// For sockets: below the other, or elsewhere if that is too deep.
    runtime: PathBuf,
    keep: bool,
}

impl Ground {
    /// Makes one below the system's directory for what is temporary.
    pub(super) fn new(name: &str, keep: bool) -> Result<Ground, Failure> {
        let temporary = std::env::temp_dir();
        let base = if temporary.is_absolute() { temporary } else { PathBuf::from("/tmp") };
        Ground::below(&base, name, keep)
            .map_err(|failure| failure.hint("name another directory with $TMPDIR"))
    }

    /// Makes one below a directory, with whatever is needed but the home, which makes itself.
    pub(super) fn below(base: &Path, name: &str, keep: bool) -> Result<Ground, Failure> {
        let make = |path: &Path| {
            DirBuilder::new().mode(0o700).create(path).map_err(|error| {
                let error = anyhow::Error::new(error).context(format!("cannot make {}", path.display()));
                Failure::failed("temporary_dir", error)
            })
        };
        let name = format!("rekindle-{name}-{:08x}", random()? as u32);
        let path = base.join(&name);
        make(&path)?;
        let fits = base.as_os_str().len() <= DEEPEST;
        let runtime = if fits { path.join("run") } else { Path::new("/tmp").join(name) };
        let ground = Ground { path, runtime, keep };
        make(&ground.runtime)?;
        make(&ground.at("work"))?;
        Ok(ground)
    }

    /// Returns where sockets are.
    pub(super) fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// Returns the directory itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path below it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the home.
    pub(super) fn home(&self) -> PathBuf {
        self.at("home")
    }

    /// Leaves the files where they are when everything is over.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }

    /// Tells whether the files stay.
    pub(super) fn is_kept(&self) -> bool {
        self.keep
    }

    /// Returns how many processes still live here: a daemon, holders, agents.
    pub(super) fn living(&self) -> usize {
        living(&self.home())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        end_all(&self.home());
        // Nobody is left to be told.
        let _ = std::fs::remove_dir_all(&self.runtime);
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns how many processes live in a home: a daemon, holders, agents.
pub(super) fn living(home: &Path) -> usize {
    let daemon = home::owner(&RealDisk, &Layout::new(home)).is_some();
    let seen = inspect_all(&home.join("holders")).unwrap_or_default();
    let holders = seen.iter().filter(|one| matches!(one.lock, LockState::Held { .. })).count();
    let agents: usize = seen.iter().map(|one| marked(&one.holder_id).members().map_or(0, |m| m.len())).sum();
    usize::from(daemon) + holders + agents
}

/// Ends whoever lives in a home: the daemon first, so that it starts nobody else, and then holders and agents.
pub(super) fn end_all(home: &Path) {
    let owner = home::owner(&RealDisk, &Layout::new(home)).and_then(|owner| owner.pid);
    if let Some(daemon) = owner.and_then(|pid| Identity::of(i32::try_from(pid).ok()?).ok()) {
        kill(&daemon);
    }
    let begin = Instant::now();
    while end_holders(home) && begin.elapsed() < APPEARS_WITHIN {
        std::thread::sleep(LOOK);
    }
}

/// Ends every holder and what is left of its agent; tells whether there was any that may not be gone yet.
fn end_holders(home: &Path) -> bool {
    let mut busy = false;
    for one in inspect_all(&home.join("holders")).unwrap_or_default() {
        match &one.lock {
            LockState::Held { note: Some(note), by: Keeper::Holder } => {
                kill(&note.process);
                busy = true;
            }
            // It is being made.
            LockState::Held { note: None, .. } => busy = true,
            LockState::Missing => busy |= one.exit == Found::Missing,
            // It is another home's, and so is its agent.
            LockState::Copied { .. } => continue,
            _ => {}
        }
        busy |= marked(&one.holder_id).signal(Signal::KILL).is_ok_and(|ended| !ended.is_empty());
    }
    busy
}

/// An agent and what it started, wherever that is.
pub(super) fn marked(holder_id: &str) -> Tree {
    Tree { mark: holder_id.to_owned(), group: None, ancestor: None, cgroup: None }
}

/// Kills exactly this process, and waits until it is gone; tells whether it was there and is gone.
pub(super) fn kill(process: &Identity) -> bool {
    let killed = signal_exactly(process, Signal::KILL).unwrap_or(false);
    let gone = await_end(process, DIES_WITHIN).unwrap_or(false);
    collect(process);
    killed && gone
}

/// Waits until a process has ended by itself; tells whether it has.
pub(super) fn ended(process: &Identity) -> bool {
    let gone = await_end(process, DIES_WITHIN).unwrap_or(false);
    collect(process);
    gone
}

/// A daemon is a child of ours, and nobody else collects it while we live.
fn collect(process: &Identity) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        // Whoever is not our child is not ours to collect.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
