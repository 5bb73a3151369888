//! Holders as they are: processes of their own, with directories, locks and sockets.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::{AgentProcess, SessionState};
use rekindle_holder::client::{
    self, ConnectError, FollowError, Follower, Harvest, HarvestError, Inspection, LockState, PrepareError,
    Prepared, RemoveError, RequestError, SpawnError, Spec,
};
use rekindle_holder::dir::{EpochNote, ExitNote, HolderDir, Launch, LockNote};
use rekindle_holder::identity::{Identity, Presence, machine_boot};
use rekindle_holder::journal::Item;
use rekindle_holder::wire::{Event, Marks, Mode};

use super::{Control, HolderPaths, Holders, Journal};

/// Holders that are processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes;

impl Holders for Processes {
    fn find(&self, holders: &Path, state: &SessionState) -> AgentPresence {
        look_for_holder(holders, state)
    }

    fn list(&self, holders: &Path) -> io::Result<Vec<Inspection>> {
        client::inspect_all(holders)
    }

    fn prepare(&self, places: &HolderPaths, spec: Spec) -> Result<Prepared, PrepareError> {
        client::prepare(&places.holders, &places.runtime, &places.executable, spec)
    }

    fn start(&self, places: &HolderPaths, prepared: &Prepared) -> Result<(), SpawnError> {
        let (spawned, beside_us) = client::start_apart(prepared, places.scopes.as_ref())?;
        if let Some(why) = beside_us {
            tracing::warn!(
                error = %why,
                "the user's service manager gave no scope: for some minutes agents are started in the daemon's own control group"
            );
        }
        reap(spawned.child);
        Ok(())
    }

    fn connect(
        &self,
        dir: &HolderDir,
        instance: &str,
        epoch: u64,
        within: Duration,
    ) -> Result<Box<dyn Control>, ConnectError> {
        Ok(Box::new(client::Control::connect(dir, Mode::Control, instance, epoch, within)?))
    }

    fn follow(&self, dir: &HolderDir, from: u64) -> Box<dyn Journal> {
        Box::new(Follower::new(dir, from))
    }

    fn launch(&self, dir: &HolderDir) -> io::Result<Launch> {
        HolderDir::read(&dir.launch())
    }

    fn lock(&self, dir: &HolderDir) -> io::Result<LockNote> {
        HolderDir::read(&dir.lock())
    }

    fn epoch(&self, dir: &HolderDir) -> Option<EpochNote> {
        HolderDir::read(&dir.epoch()).ok()
    }

    fn exit(&self, dir: &HolderDir, within: Duration) -> Option<ExitNote> {
        let begin = Instant::now();
        loop {
            match HolderDir::read(&dir.exit()) {
                Ok(note) => return Some(note),
                Err(_) if begin.elapsed() < within => std::thread::sleep(Duration::from_millis(1)),
                Err(_) => return None,
            }
        }
    }

    fn is_copied(&self, dir: &HolderDir) -> bool {
        matches!(client::inspect(dir).lock, LockState::Copied { .. })
    }

    fn harvest(&self, dir: &HolderDir) -> Result<Harvest, HarvestError> {
        client::harvest(dir)
    }

    fn exists(&self, dir: &HolderDir) -> bool {
        dir.path().exists()
    }

    fn remove(&self, dir: &HolderDir) -> Result<(), RemoveError> {
        client::remove(dir)
    }
}

/// Looks for the recorded holder of a session in the directory of all holders; needs no daemon.
pub fn look_for_holder(holders: &Path, state: &SessionState) -> AgentPresence {
    let Some(agent) = state.agent.as_ref().filter(|agent| !agent.exited) else {
        return AgentPresence::Nobody;
    };
    let dir = HolderDir::new(holders.join(agent.holder_id.to_string()));
    if !dir.path().is_dir() {
        return vanished(agent.process.as_ref());
    }
    match client::inspect(&dir).lock {
        LockState::Held { .. } => AgentPresence::Lives,
        LockState::Free { .. } | LockState::Missing | LockState::Copied { .. } => AgentPresence::Dead,
        LockState::Unreadable(_) => AgentPresence::Silent,
    }
}

/// Without a directory only the processes themselves can tell.
fn vanished(process: Option<&AgentProcess>) -> AgentPresence {
    let Ok(boot) = machine_boot() else { return AgentPresence::Silent };
    let Some(process) = process else { return AgentPresence::Vanished { rebooted: false } };
    if process.machine_boot != boot {
        return AgentPresence::Vanished { rebooted: true };
    }
    let lives = [process.holder, process.agent].into_iter().any(|one| {
        let Ok(pid) = i32::try_from(one.pid) else { return true };
        let identity = Identity { pid, start_ticks: one.started, machine_boot: boot.clone() };
        !matches!(identity.presence(), Ok(Presence::Gone))
    });
    if lives { AgentPresence::Silent } else { AgentPresence::Vanished { rebooted: false } }
}

/// Collects a holder of ours when it ends, should we live that long.
fn reap(mut child: std::process::Child) {
    // Without a thread it stays to be collected by whoever collects us.
    let _ = std::thread::Builder::new().name("reaper".into()).spawn(move || drop(child.wait()));
}

impl Control for client::Control {
    fn marks(&self) -> &Marks {
        self.marks()
    }

    fn start(&mut self, env: BTreeMap<String, String>) -> Result<Identity, RequestError> {
        self.start(env)
    }

    fn input(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<(), RequestError> {
        self.input(number, kind, bytes).map(drop)
    }

    fn close_input(&mut self, after: u64) -> Result<(), RequestError> {
        self.close_input(after)
    }

    fn ack(&mut self, seq: u64) -> Result<(), RequestError> {
        self.ack(seq)
    }

    fn stop(&mut self, reason: &str, actor: &str, grace: Duration) -> Result<(), RequestError> {
        self.stop(reason, actor, grace)
    }

    fn beat(&mut self) -> Result<(), RequestError> {
        self.beat()
    }

    fn next_event(&mut self) -> Result<Option<Event>, RequestError> {
        self.next_event(Duration::ZERO)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Journal for Follower {
    fn next_item(&mut self) -> Result<Option<Item<'static>>, FollowError> {
        self.next_item()
    }

    fn finish(&mut self) -> Option<Item<'static>> {
        self.finish()
    }

    fn unfinished(&self) -> Option<u64> {
        Some(self.low()).filter(|low| *low < self.next_seq())
    }

    fn unread(&self) -> io::Result<u64> {
        self.unread()
    }
}
