//! The processes of a home: its daemon, holders and agents. They are started, killed, stopped and looked at from here, each as
//! exactly the process that is meant.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rekindle_client::failure::Failure;
use rekindle_client::start;
use rekindle_holder::client::{Inspection, Keeper, LockState, inspect_all};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::{Signal, WaitOptions, waitpid};
use serde_json::json;

use super::oracle::Sight;
use super::retrying_client::{CancelToken, PATIENCE, RetryingClient};
use crate::ground::{end_all, ended, is_alive, kill};

/// How long a daemon may take to go over what it finds at its start.
const RECOVERED: Duration = Duration::from_secs(15);

/// An agent that works, and the process that keeps it.
pub(super) struct HeldAgent {
    pub(super) session: String,
    pub(super) holder: Identity,
    pub(super) agent: Option<Identity>,
}

/// A home, and who lives in it.
pub(super) struct Processes {
    pub(super) home: PathBuf,
    runtime: PathBuf,
    pub(super) cancel: CancelToken,
    daemon: Option<Identity>,
    epoch: u64,
    /// What its daemons get into their environment.
    pub(super) more: Vec<(&'static str, PathBuf)>,
    /// What was seen and is to be judged.
    pub(super) sights: Vec<Sight>,
}

impl Processes {
    pub(super) fn new(home: &Path, runtime: &Path, cancel: &CancelToken) -> Processes {
        let (home, runtime, cancel) = (home.to_owned(), runtime.to_owned(), cancel.clone());
        Processes { home, runtime, cancel, daemon: None, epoch: 0, more: Vec::new(), sights: Vec::new() }
    }

    pub(super) fn asker(&self) -> Result<RetryingClient, Failure> {
        RetryingClient::new(&self.home, self.cancel.clone())
    }

    /// Starts a daemon once; whether it came up is up to it.
    pub(super) fn try_start(&mut self, arguments: &[&str], more: &[(&str, &Path)]) -> Result<(), Failure> {
        let mut env = vec![("XDG_RUNTIME_DIR", self.runtime.as_path())];
        env.extend(self.more.iter().map(|(name, value)| (*name, value.as_path())));
        env.extend_from_slice(more);
        let begin = Instant::now();
        let place = start::try_start(&self.home, arguments, &env)?;
        let ready_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.sights.push(Sight::Successor { before: self.epoch, epoch: place.epoch, ready_ms });
        self.epoch = self.epoch.max(place.epoch);
        self.daemon = place.process;
        Ok(())
    }

    /// Starts a daemon unless one lives; tells whether there is one.
    pub(super) fn start(&mut self) -> bool {
        let begin = Instant::now();
        while !self.lives() && !self.cancel.is_cancelled() {
            if let Err(failure) = self.try_start(&[], &[])
                && begin.elapsed() > PATIENCE / 4
            {
                self.sights.push(Sight::NoDaemon { why: failure.message() });
                return false;
            }
        }
        !self.cancel.is_cancelled()
    }

    /// Tells whether the daemon lives.
    pub(super) fn lives(&self) -> bool {
        self.daemon.as_ref().is_some_and(is_alive)
    }

    pub(super) fn daemon(&self) -> Option<&Identity> {
        self.daemon.as_ref()
    }

    /// Kills the daemon without a word.
    pub(super) fn kill(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            kill(&daemon);
        }
        reap();
    }

    /// Asks the daemon to leave, and waits for that.
    pub(super) fn leave(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            // One that has died has left.
            let _ = signal_exactly(&daemon, Signal::TERM);
            if !ended(&daemon) {
                kill(&daemon);
            }
        }
        reap();
    }

    /// Kills everybody at once.
    pub(super) fn kill_all(&mut self) {
        self.daemon = None;
        end_all(&self.home);
        reap();
    }

    /// Asks the daemon to end every agent and itself; tells whether it did.
    pub(super) fn dismiss(&mut self) -> Result<bool, Failure> {
        let told = self.asker()?.post("/api/shutdown", &json!({"agents": true})).is_some();
        let gone = self.daemon.take().is_none_or(|daemon| {
            // Agents get fifteen seconds to end, of which ended() waits five at a time.
            (0..4).any(|_| ended(&daemon))
        });
        reap();
        Ok(told && gone)
    }

    /// Waits until the daemon has gone over everything that it found.
    pub(super) fn recovered(&self) -> Result<bool, Failure> {
        let asker = self.asker()?;
        let recovered = || {
            let version = asker.once("GET", "/api/version", None, None)?;
            (version.body["recovered"] == true).then_some(())
        };
        Ok(self.cancel.wait_for(RECOVERED, recovered).is_some())
    }

    /// Tells whether the process that answers is the daemon that was started last.
    pub(super) fn serves(&self) -> Result<bool, Failure> {
        let version = self.asker()?.get("/api/version");
        let pid = version.and_then(|version| version["pid"].as_i64());
        Ok(pid.is_some() && pid == self.daemon.as_ref().map(|daemon| i64::from(daemon.pid)))
    }

    /// Returns every holder that lives.
    pub(super) fn pairs(&self) -> Vec<HeldAgent> {
        let seen = inspect_all(&self.home.join("holders")).unwrap_or_default();
        seen.iter().filter_map(pair).collect()
    }
}

fn pair(seen: &Inspection) -> Option<HeldAgent> {
    let LockState::Held { note: Some(note), by: Keeper::Holder } = &seen.lock else { return None };
    let session = seen.launch.there()?.session_id.clone();
    let agent = seen.status.there().and_then(|status| status.agent.clone());
    Some(HeldAgent { session, holder: note.process.clone(), agent: agent.filter(is_alive) })
}

/// Collects daemons that have died: they are our children, and nobody else does while we live.
pub(super) fn reap() {
    while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
}
