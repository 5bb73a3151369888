//! Ending an agent that no session knows, by proof: its directory was made for this home, its lock is held by the very
//! process it names, and the session is gone. A person has said so before.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rekindle_holder::client::{Keeper, LockState, inspect};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::tree::signal_exactly;
use rekindle_store::disk::{Disk, RealDisk};
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rustix::process::Signal;

use crate::test_knobs::crash_point;
use crate::upkeep::holders::{Standing, inspect_holders};

/// What a holder needs beyond the two steps of its agent's end: collecting the rest of its output and the tree.
const BEYOND: Duration = Duration::from_secs(15);

/// Between two looks at a lock.
const LOOK: Duration = Duration::from_millis(20);

/// Asks a holder to end its agent and itself, and waits for that. Everything is looked at afresh.
pub(super) fn end(home: &Path, disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::other(format!("{why}; no process was signalled")));
    if home::is_copied(disk, &Layout::new(home)) {
        return refuse("this home is a copy, and the agent may belong to the original");
    }
    let offline = Offline::open(std::sync::Arc::new(RealDisk), home).map_err(io::Error::other)?;
    let found = inspect_holders(&offline)?.into_iter().find(|holder| holder.seen.dir.path() == path);
    let Some(holder) = found.filter(|holder| holder.standing == Standing::Orphan && holder.ours) else {
        return refuse("it is no longer an orphan of this home");
    };
    let LockState::Held { note: Some(note), by: Keeper::Holder } = &holder.seen.lock else {
        return refuse("it is not certain which process it is");
    };
    if note.holder_id != holder.seen.holder_id {
        return refuse("its lock names another holder");
    }
    crash_point("repair.before_signal");
    // It ends its agent in order: what that one still says is in the journal, and the journal stays.
    signal_exactly(&note.process, Signal::TERM)?;
    crash_point("repair.signalled");
    let grace = holder.seen.launch.there().map_or(0, |launch| launch.limits.grace_ms);
    let deadline = Instant::now() + Duration::from_millis(grace.saturating_mul(2)) + BEYOND;
    let dir = HolderDir::new(path);
    while !matches!(inspect(&dir).lock, LockState::Free { .. }) {
        if Instant::now() >= deadline {
            let pid = note.process.pid;
            return Err(io::Error::other(format!("process {pid} was asked to end and is still there")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
