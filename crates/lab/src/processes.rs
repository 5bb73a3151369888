//! Who lives in a home: its daemon, holders and agents. Each is looked at, killed and waited for as exactly the process that
//! is meant, without a daemon in between.

use std::io;
use std::path::Path;
use std::time::Duration;

use rekindle_holder::client::{FileContents, Keeper, LockState, inspect_all};
use rekindle_holder::identity::{Identity, Presence};
use rekindle_holder::tree::{Tree, await_end, signal_exactly};
use rekindle_store::disk::RealDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rustix::process::Signal;
use serde_json::Value;

use crate::wait::look_for;

/// How long a process may take to be gone once it was killed.
const DIES_WITHIN: Duration = Duration::from_secs(5);

/// How long whoever is just being started may take to show itself, so that it can be ended.
const APPEARS_WITHIN: Duration = Duration::from_secs(1);

/// How often it is looked who is left.
const LOOK: Duration = Duration::from_millis(10);

/// Returns what a home's daemon says of itself in its file; null without one. It may have died since.
pub fn daemon_file(home: &Path) -> Value {
    let bytes = std::fs::read(home.join("daemon.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// Tells whether a process lives.
pub fn is_alive(process: &Identity) -> bool {
    matches!(process.presence(), Ok(Presence::Alive))
}

/// Returns how many processes live in a home: a daemon, holders, agents.
pub fn living(home: &Path) -> usize {
    let daemon = home::owner(&RealDisk, &Layout::new(home)).is_some();
    let seen = inspect_all(&home.join("holders")).unwrap_or_default();
    let holders = seen.iter().filter(|one| matches!(one.lock, LockState::Held { .. })).count();
    let agents: usize = seen.iter().map(|one| marked(&one.holder_id).members().map_or(0, |m| m.len())).sum();
    usize::from(daemon) + holders + agents
}

/// Returns the holders of a home that live. Whoever removes the directory of a dead one has its lock for a moment.
pub fn living_holders(home: &Path) -> io::Result<Vec<Identity>> {
    let found = inspect_all(&home.join("holders"))?;
    let lives = found.into_iter().filter_map(|seen| match seen.lock {
        LockState::Held { note: Some(note), .. } => Some(note.process),
        _ => None,
    });
    Ok(lives.filter(|process| !matches!(process.presence(), Ok(Presence::Gone))).collect())
}

/// Ends whoever lives in a home: the daemon first, so that it starts nobody else, and then holders and agents.
pub fn end_all(home: &Path) {
    let owner = home::owner(&RealDisk, &Layout::new(home)).and_then(|owner| owner.pid);
    if let Some(daemon) = owner.and_then(|pid| Identity::of(i32::try_from(pid).ok()?).ok()) {
        kill(&daemon);
    }
    look_for(APPEARS_WITHIN, LOOK, || (!end_holders(home)).then_some(()));
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
            LockState::Missing => busy |= one.exit == FileContents::Missing,
            // It is another home's, and so is its agent.
            LockState::Copied { .. } => continue,
            _ => {}
        }
        busy |= marked(&one.holder_id).signal(Signal::KILL).is_ok_and(|ended| !ended.is_empty());
    }
    busy
}

/// Returns an agent and what it started, wherever that is.
pub fn marked(holder_id: &str) -> Tree {
    Tree { mark: holder_id.to_owned(), ..Tree::default() }
}

/// Kills exactly this process, and waits until it is gone; tells whether it was there and is gone.
pub fn kill(process: &Identity) -> bool {
    let killed = signal_exactly(process, Signal::KILL).unwrap_or(false);
    ended(process) && killed
}

/// Waits until a process has ended by itself; tells whether it has. A child of ours is still to be collected.
pub fn ended(process: &Identity) -> bool {
    await_end(process, DIES_WITHIN).unwrap_or(false)
}
