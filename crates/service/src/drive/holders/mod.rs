//! The holders of a home, as far as whoever drives agents needs them: looked at, launched, commanded, followed, and taken
//! over when they are dead. Nothing above this knows a process, a socket or a lock, so that every decision about an agent can
//! be tried without one.

mod processes;

pub use processes::{Processes, look_for_holder};

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{
    ConnectError, Executable, FollowError, Harvest, HarvestError, Inspection, PrepareError, Prepared,
    RemoveError, RequestError, Scopes, SpawnError, Spec,
};
use rekindle_holder::dir::{EpochNote, ExitNote, HolderDir, Launch, LockNote};
use rekindle_holder::identity::Identity;
use rekindle_holder::journal::Item;
use rekindle_holder::wire::{Event, Marks};

/// Paths of a home's holders: where they live, and what is run.
#[derive(Debug, Clone)]
pub struct HolderPaths {
    /// Their directories.
    pub holders: PathBuf,
    /// Their sockets.
    pub runtime: PathBuf,
    /// Their executable.
    pub executable: Executable,
    /// Who gives each of them a scope of its own, if anyone does.
    pub scopes: Option<Scopes>,
}

/// The holders of a home, each named by its directory.
pub trait Holders: Send + Sync {
    /// Looks for the recorded holder of a session.
    fn find(&self, holders: &Path, state: &SessionState) -> AgentPresence;

    /// Looks at all of them.
    fn list(&self, holders: &Path) -> io::Result<Vec<Inspection>>;

    /// Makes everything of a holder but its process.
    fn prepare(&self, places: &HolderPaths, spec: Spec) -> Result<Prepared, PrepareError>;

    /// Starts a holder that was prepared; returns when it can be spoken with.
    fn start(&self, places: &HolderPaths, prepared: &Prepared) -> Result<(), SpawnError>;

    /// Takes command of a living one.
    fn connect(
        &self,
        dir: &HolderDir,
        instance: &str,
        epoch: u64,
        within: Duration,
    ) -> Result<Box<dyn Control>, ConnectError>;

    /// Reads the journal of one, living or not, from a record on.
    fn follow(&self, dir: &HolderDir, from: u64) -> Box<dyn Journal>;

    /// Reads what one is for.
    fn launch(&self, dir: &HolderDir) -> io::Result<Launch>;

    /// Reads what its lock says of its owner.
    fn lock(&self, dir: &HolderDir) -> io::Result<LockNote>;

    /// Reads who commanded last.
    fn epoch(&self, dir: &HolderDir) -> Option<EpochNote>;

    /// Reads how its agent ended; one that may just be about to write it is given so long.
    fn exit(&self, dir: &HolderDir, within: Duration) -> Option<ExitNote>;

    /// Tells whether the directory is a copy of another home's.
    fn is_copied(&self, dir: &HolderDir) -> bool;

    /// Ends whatever a dead one left running, and tells what it left.
    fn harvest(&self, dir: &HolderDir) -> Result<Harvest, HarvestError>;

    /// Tells whether anything is left of one.
    fn exists(&self, dir: &HolderDir) -> bool;

    /// Removes everything of a dead one.
    fn remove(&self, dir: &HolderDir) -> Result<(), RemoveError>;
}

/// Command of a living holder.
pub trait Control: Send {
    /// Returns how far everything had come when we were let in.
    fn marks(&self) -> &Marks;

    /// Has the agent started with this whole environment.
    fn start(&mut self, env: BTreeMap<String, String>) -> Result<Identity, RequestError>;

    /// Gives the agent an input; returns when it is safe with the holder.
    fn input(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<(), RequestError>;

    /// Has the agent's input closed behind an input.
    fn close_input(&mut self, after: u64) -> Result<(), RequestError>;

    /// Tells that everything up to a record is safe.
    fn ack(&mut self, seq: u64) -> Result<(), RequestError>;

    /// Begins the agent's end.
    fn stop(&mut self, reason: &str, actor: &str, grace: Duration) -> Result<(), RequestError>;

    /// Asks for a sign of life and does not wait for it.
    fn beat(&mut self) -> Result<(), RequestError>;

    /// Returns the next thing that was told; none if there is none now.
    fn next_event(&mut self) -> Result<Option<Event>, RequestError>;

    /// Returns what to poll for news, if there is such a thing.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;
}

/// A place in a holder's journal.
pub trait Journal: Send {
    /// Returns the next whole thing; none if there is none now.
    fn next_item(&mut self) -> Result<Option<Item<'static>>, FollowError>;

    /// Ends the journal of a dead holder: returns the line that was not finished, if there is one.
    fn finish(&mut self) -> Option<Item<'static>>;

    /// Returns the oldest record of a line that is not whole yet, if there is one.
    fn unfinished(&self) -> Option<u64>;

    /// Returns how many bytes have not been read.
    fn unread(&self) -> io::Result<u64>;
}
