//! What a dead holder left: how its agent ended, how far its journal is right, and whoever of the agent's tree
//! survived it. All of it under the holder's own lock.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::lock::{DirLock, LockError};
use crate::dir::{ExitNote, HolderDir, Launch, LockNote, StatusNote};
use crate::file_ops::if_exists;
use crate::identity::{Identity, machine_boot};
use crate::journal::{Body, Ctl, Damage, JournalReader, Step};
use crate::tree::{Tree, await_end};

/// How long those who are killed may take to be gone. The kernel needs milliseconds; one that waits for a disk
/// may need for ever, and is named instead.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// How long to wait for those found before looking for more.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Whether the holder ever started its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It did not, and that is certain: a fresh launch repeats nothing.
    Never,
    /// It was about to; the agent may have run.
    Asked,
    /// It did.
    Yes,
    /// It tried, and there was no agent.
    Failed(String),
    /// The journal is broken before it could tell.
    Unknown,
}

/// What a dead holder left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harvest {
    /// How it ended, if it lived to write it.
    pub exit: Option<ExitNote>,
    /// Why the end cannot be told although it was written.
    pub exit_unreadable: Option<String>,
    /// Where the journal is broken; everything before is right.
    pub damage: Option<Damage>,
    /// The last record that is right; 0 if there is none.
    pub last_seq: u64,
    /// Whether there ever was an agent.
    pub started: Started,
    /// The agent, as the holder last named it.
    pub agent: Option<Identity>,
    /// The directory is a copy of another: nobody was signalled.
    pub copied: bool,
    /// Nobody of the agent's tree is left: proven, not assumed.
    pub tree_gone: bool,
    /// Those who are left.
    pub left: Vec<Identity>,
}

/// Why nothing could be harvested.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The holder is not dead.
    #[error("the holder is not proven dead")]
    Lock(#[from] LockError),
    /// The journal could not be read.
    #[error("cannot read the journal in {path}; try again, nothing was lost")]
    Journal {
        /// Its directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The machine's processes could not be listed.
    #[error(
        "cannot check for remaining processes of the agent; try again before another agent takes over its work"
    )]
    Processes(#[source] io::Error),
}

/// Harvests a holder whose lock is free.
pub fn harvest(dir: &HolderDir) -> Result<Harvest, HarvestError> {
    harvest_under(&DirLock::take(dir)?)
}

/// Harvests a holder whose lock we have.
pub fn harvest_under(lock: &DirLock) -> Result<Harvest, HarvestError> {
    let dir = &lock.dir;
    // First of all: nobody may go on writing into the workspace, however long the journal is.
    let launch: Option<Launch> = HolderDir::read(&dir.launch()).ok();
    let status: Option<StatusNote> = HolderDir::read(&dir.status()).ok();
    let named = status.as_ref().and_then(|status| status.agent.clone());
    let boot = machine_boot().map_err(HarvestError::Processes)?;
    // The directory bears the holder's name, whatever became of the file that says what it was for.
    let name = dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let holder_id = launch.as_ref().map_or(name, |launch| launch.holder_id.clone());
    let tree = tree_of(&holder_id, status.as_ref(), named.clone(), lock.note.as_ref());
    let may_signal = !lock.copied && of_this_boot(launch.as_ref(), lock, &boot);
    let left = kill_remaining(&tree, may_signal).map_err(HarvestError::Processes)?;
    let mut harvest = Harvest {
        exit: None,
        exit_unreadable: None,
        damage: None,
        last_seq: 0,
        started: Started::Never,
        agent: None,
        copied: lock.copied,
        tree_gone: false,
        left,
    };
    let boot = launch.as_ref().map(|launch| launch.machine_boot.clone()).unwrap_or_default();
    read_journal(dir, boot, &mut harvest)
        .map_err(|source| HarvestError::Journal { path: dir.journal(), source })?;
    // The hint may be older than the journal: if that one knows better who the agent was, look once more.
    if let Some(agent) = harvest.agent.clone().filter(|agent| named.as_ref() != Some(agent)) {
        let tree = Tree { group: Some(agent.pid), agent: Some(agent), ..tree.clone() };
        harvest.left = kill_remaining(&tree, may_signal).map_err(HarvestError::Processes)?;
    }
    harvest.tree_gone = harvest.left.is_empty();
    if let Some(cgroup) = tree.cgroup.as_ref().filter(|_| may_signal && harvest.tree_gone) {
        // The holder would have removed it; one that is not empty stays.
        let _ = std::fs::remove_dir(cgroup);
    }

    if let Some(launch) = launch.as_ref().filter(|_| may_signal) {
        // The holder would have removed it too; whoever has its lock knows that nobody listens there.
        let _ = std::fs::remove_file(&launch.socket);
    }

    match if_exists(HolderDir::read(&dir.exit())) {
        Ok(exit) => harvest.exit = exit,
        Err(error) => harvest.exit_unreadable = Some(error.to_string()),
    }
    harvest.agent = harvest.agent.or(named);
    if harvest.started == Started::Never {
        harvest.started = match (&harvest.agent, &harvest.damage) {
            (Some(_), _) => Started::Yes,
            (None, Some(_)) => Started::Unknown,
            (None, None) => Started::Never,
        };
    }
    Ok(harvest)
}

/// Returns where to look for a dead holder's agent.
pub(super) fn tree_of(
    holder_id: &str,
    status: Option<&StatusNote>,
    agent: Option<Identity>,
    lock: Option<&LockNote>,
) -> Tree {
    let cgroup = status.and_then(|status| status.cgroup.clone());
    // The hint is no authority: only a group that bears this holder's name is its own.
    let name = format!("rekindle-{holder_id}");
    let cgroup = cgroup.filter(|path| path.file_name().is_some_and(|file| *file == *name));
    let (group, holder) = (agent.as_ref().map(|agent| agent.pid), lock.map(|note| note.process.clone()));
    Tree { mark: holder_id.to_owned(), group, ancestor: None, cgroup, agent, holder }
}

/// Tells whether what the files say of processes is about this boot of the machine.
fn of_this_boot(launch: Option<&Launch>, lock: &DirLock, boot: &str) -> bool {
    let locked = lock.note.as_ref().map(|note| note.process.machine_boot == boot);
    match launch {
        Some(launch) => launch.machine_boot == boot && locked != Some(false),
        None => locked == Some(true),
    }
}

/// Kills whoever is left, as often as someone new is found; returns those that would not go. The agent has lost
/// its holder: nobody reads it any more, so there is nothing it could still be asked.
fn kill_remaining(tree: &Tree, may_signal: bool) -> io::Result<Vec<Identity>> {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let left = tree.members()?;
        if left.is_empty() || !may_signal || Instant::now() >= deadline {
            return Ok(left);
        }
        tree.signal(Signal::KILL)?;
        let until = deadline.min(Instant::now() + LOOK_AGAIN);
        for one in &left {
            await_end(one, until.saturating_duration_since(Instant::now()))?;
        }
    }
}

/// Reads a journal to its end, or to where it is broken.
fn read_journal(dir: &HolderDir, machine_boot: String, harvest: &mut Harvest) -> io::Result<()> {
    let mut reader = JournalReader::open(dir.journal(), 1);
    loop {
        let record = match reader.step()? {
            Step::Record(record) => record,
            Step::End => return Ok(()),
            Step::Damaged(damage) => {
                harvest.damage = Some(damage);
                return Ok(());
            }
        };
        if harvest.last_seq == 0 && record.seq > 1 {
            // The beginning was acknowledged and removed, so there was something to acknowledge.
            harvest.started = Started::Yes;
        }
        harvest.last_seq = record.seq;
        match record.body {
            Body::Ctl(Ctl::Start { .. }) if harvest.started == Started::Never => {
                harvest.started = Started::Asked;
            }
            Body::Ctl(Ctl::Started { pid, start_ticks }) => {
                harvest.started = Started::Yes;
                harvest.agent = Some(Identity { pid, start_ticks, machine_boot: machine_boot.clone() });
            }
            Body::Ctl(Ctl::StartFailed { error }) => harvest.started = Started::Failed(error),
            Body::Out { .. } | Body::In { .. } | Body::InDone { .. } => harvest.started = Started::Yes,
            Body::Ctl(_) | Body::Unknown { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
