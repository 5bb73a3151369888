//! All processes of an agent, wherever they went, and signals that reach nobody else. The kernel's lists change
//! while they are read: whoever is named here was seen twice, and what makes them one of the tree as well.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::descriptors::wait_readable;
use crate::file_ops::if_exists;
use crate::identity::{Identity, Presence, Stat, is_gone, machine_boot};

/// The environment variable that marks every process of an agent's tree.
pub const MARK: &str = "REKINDLE_MARK";

/// How often a look is repeated because processes came or went during it. Each new look starts from the mark
/// and the ancestor, so few are enough; whoever cannot be proven in the last one is left out.
const LOOKS: usize = 4;

/// Where to look for an agent's processes.
///
/// Whatever carries the mark, is below the ancestor or is in the cgroup belongs to the tree, and so does every
/// child of those. A process group is only a number: when its last member is gone the kernel gives it to anyone.
/// It counts only while at least one member belongs to the tree for another reason. That is proof for the rest,
/// because nobody can join a group from outside its session, and every process of a session descends from the
/// one that made it. Of a holder that is dead more may be known from its own files; of this boot, or it counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// The value of [`MARK`]: the holder's id. An empty one marks nobody.
    pub mark: String,
    /// The agent's process group.
    pub group: Option<i32>,
    /// The living holder, whose descendants all belong to the tree. The caller must know that it lives.
    pub ancestor: Option<i32>,
    /// A control group that holds nothing but the holder and its agent.
    pub cgroup: Option<PathBuf>,
    /// The agent of a dead holder. It belongs to the tree if it still lives, even if it has overwritten the place of its mark.
    pub agent: Option<Identity>,
    /// The dead holder, which made the session that the agent's group is in. A group of that number in a session of
    /// that number is proof even without a living witness, unless one of the numbers names a later process: both
    /// would have to have come round, to a leader of a session and to a leader of a group in it, and both leaders
    /// to have gone again.
    pub holder: Option<Identity>,
}

impl Tree {
    /// Returns every process of the tree except ourselves, the ancestor and what has ended.
    pub fn members(&self) -> io::Result<Vec<Identity>> {
        let boot = machine_boot()?;
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            let complete;
            (found, complete) = self.scan(&boot)?;
            if complete {
                break;
            }
        }
        Ok(found)
    }

    /// Signals every member and returns those that got it. A member can have had a child meanwhile: whoever wants
    /// the tree gone looks again until nobody is left.
    pub fn signal(&self, signal: Signal) -> io::Result<Vec<Identity>> {
        let (mut signalled, mut failed) = (Vec::new(), None);
        for member in self.members()? {
            match signal_exactly(&member, signal) {
                Ok(true) => signalled.push(member),
                Ok(false) => {}
                // A program that changed its user: it stays in the list of members, which is what counts.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(signalled), Err)
    }

    /// Looks once; tells also whether everybody who seemed to belong to the tree could be proven to.
    fn scan(&self, boot: &str) -> io::Result<(Vec<Identity>, bool)> {
        let seen = all_processes()?;
        let mut members = Members::default();
        let wanted = format!("{MARK}={}", self.mark).into_bytes();
        let led = self.led(&seen, boot);
        let mut complete = true;
        for (pid, stat) in &seen {
            let is_agent = self.agent.as_ref().is_some_and(|agent| {
                (agent.pid, agent.start_ticks) == (*pid, stat.start_ticks) && agent.machine_boot == boot
            });
            let is_led = led == Some((stat.group, stat.session));
            let entry = if self.mark.is_empty() { Entry::Missing } else { entry(*pid, stat, &wanted) };
            if is_agent || is_led || entry == Entry::There {
                members.add(*pid, Why::Itself);
            }
            complete &= entry != Entry::Unsettled;
        }
        if let Some(cgroup) = &self.cgroup {
            in_cgroup(cgroup, &mut |pid| {
                if seen.contains_key(&pid) {
                    members.add(pid, Why::Itself);
                }
            })?;
        }
        while members.grow(&seen, self.group.filter(|group| *group > 1), self.ancestor.filter(|pid| *pid > 1))
        {
        }
        let ourselves = std::process::id() as i32;
        let mut proven = BTreeMap::new();
        for (pid, why) in &members.order {
            match prove(*pid, *why, &seen, &proven, self.ancestor)? {
                Proof::Holds { ended } => {
                    proven.insert(*pid, ended);
                }
                Proof::Gone => {}
                Proof::Broken => complete = false,
            }
        }
        let living = proven
            .into_iter()
            .filter(|(pid, ended)| !ended && *pid > 1 && *pid != ourselves && Some(*pid) != self.ancestor);
        let identity =
            |(pid, _)| Identity { pid, start_ticks: seen[&pid].start_ticks, machine_boot: boot.to_owned() };
        Ok((living.map(identity).collect(), complete))
    }

    /// Returns group and session that together prove a process to be of the tree, if they still can.
    fn led(&self, seen: &BTreeMap<i32, Stat>, boot: &str) -> Option<(i32, i32)> {
        let (group, holder) = (self.group.filter(|group| *group > 1)?, self.holder.as_ref()?);
        let agent = self.agent.as_ref().filter(|agent| agent.pid == group)?;
        let leads = |leader: &Identity| {
            let now = seen.get(&leader.pid);
            leader.machine_boot == boot && now.is_none_or(|stat| stat.start_ticks == leader.start_ticks)
        };
        (leads(agent) && leads(holder)).then_some((group, holder.pid))
    }
}

/// Signals a process if it is still that very one; false if it is gone.
pub fn signal_exactly(identity: &Identity, signal: Signal) -> io::Result<bool> {
    if identity.pid <= 1 {
        let why = format!("process {} is never signalled", identity.pid);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let Some(handle) = handle_of(identity.pid)? else { return Ok(false) };
    // From here on the handle means one process; if that is the right one now, it will be when it is signalled.
    if identity.presence()? == Presence::Gone {
        return Ok(false);
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a process has ended, collected or not, but not longer than this; tells whether it has.
pub fn await_end(identity: &Identity, most: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + most;
    let Some(handle) = handle_of(identity.pid)? else { return Ok(true) };
    // The handle becomes readable at the end of its process; whether that is the right one is looked at first.
    Ok(identity.presence()? == Presence::Gone || wait_readable(&handle, deadline)?)
}

/// Returns a handle of a process, which means that one process from now on; none if there is none of that number.
fn handle_of(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Some(pid).filter(|pid| *pid > 1).and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => Ok(None),
        handle => Ok(Some(handle?)),
    }
}

/// What makes a process one of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Its mark, its identity, its cgroup, or its group and session at once.
    Itself,
    /// Its parent.
    Child(i32),
    /// Its group, of which this one belongs to the tree.
    Group(i32),
}

/// Those found so far, each after the one it was found by.
#[derive(Debug, Default)]
struct Members {
    order: Vec<(i32, Why)>,
    pids: BTreeSet<i32>,
}

impl Members {
    fn add(&mut self, pid: i32, why: Why) {
        if self.pids.insert(pid) {
            self.order.push((pid, why));
        }
    }

    /// Adds children and the group of those that are there; tells whether there were any.
    fn grow(&mut self, seen: &BTreeMap<i32, Stat>, group: Option<i32>, ancestor: Option<i32>) -> bool {
        let before = self.order.len();
        let ourselves = std::process::id() as i32;
        let witness = group.and_then(|group| {
            self.order.iter().map(|(pid, _)| *pid).find(|pid| seen.get(pid).is_some_and(|s| s.group == group))
        });
        for (pid, stat) in seen {
            let parent = stat.parent;
            // If we carry the mark ourselves, because an agent started us, our own children still are not its.
            let of_member = self.pids.contains(&parent) && parent != ourselves;
            if parent > 1 && (Some(parent) == ancestor || of_member) {
                self.add(*pid, Why::Child(parent));
            } else if let Some(witness) = witness
                && Some(stat.group) == group
            {
                self.add(*pid, Why::Group(witness));
            }
        }
        self.order.len() > before
    }
}

enum Proof {
    /// It was one of the tree in between the two looks.
    Holds { ended: bool },
    /// It has ended and been collected.
    Gone,
    /// It, or the one it was found by, is not what it was.
    Broken,
}

/// Looks again at a process and then at the one it was found by. Both being what they were, that one was the
/// same all the time in between, so the second look at the process told the truth.
fn prove(
    pid: i32,
    why: Why,
    seen: &BTreeMap<i32, Stat>,
    proven: &BTreeMap<i32, bool>,
    ancestor: Option<i32>,
) -> io::Result<Proof> {
    let Some(now) = read_again(pid, seen)? else { return Ok(Proof::Gone) };
    let (by, related) = match why {
        Why::Itself => return Ok(Proof::Holds { ended: now.ended }),
        Why::Child(parent) => (parent, now.parent == parent),
        Why::Group(witness) => (witness, seen.get(&witness).is_some_and(|s| s.group == now.group)),
    };
    let is_one = proven.contains_key(&by) || Some(by) == ancestor;
    let same = read_again(by, seen)?.is_some_and(|by_now| match why {
        Why::Group(_) => by_now.group == now.group,
        Why::Itself | Why::Child(_) => true,
    });
    Ok(if related && is_one && same { Proof::Holds { ended: now.ended } } else { Proof::Broken })
}

/// Returns what the kernel says now of a process that was seen; none if that one is gone.
fn read_again(pid: i32, seen: &BTreeMap<i32, Stat>) -> io::Result<Option<Stat>> {
    let Some(before) = seen.get(&pid) else { return Ok(None) };
    match Stat::read(pid) {
        Ok(stat) if stat.start_ticks == before.start_ticks => Ok(Some(stat)),
        Ok(_) => Ok(None),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn all_processes() -> io::Result<BTreeMap<i32, Stat>> {
    let mut seen = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        match Stat::read(pid) {
            Ok(stat) => {
                seen.insert(pid, stat);
            }
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

/// What a process's environment tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    There,
    Missing,
    /// It is becoming another program just now, and has no environment for a moment.
    Unsettled,
}

/// Looks whether a process was started with exactly this entry in its environment. What we may not read is
/// another user's, and no agent of ours.
fn entry(pid: i32, stat: &Stat, wanted: &[u8]) -> Entry {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else { return Entry::Missing };
    if environ.split(|byte| *byte == 0).any(|entry| entry == wanted) {
        return Entry::There;
    }
    // The kernel's own threads have no group, and neither arguments nor environment either.
    let empty = environ.is_empty() && stat.group > 0 && !stat.ended;
    if empty && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.is_empty()) {
        return Entry::Unsettled;
    }
    Entry::Missing
}

/// Finds the processes of a control group and of those below it; one that is gone has none.
fn in_cgroup(path: &Path, found: &mut impl FnMut(i32)) -> io::Result<()> {
    let Some(entries) = if_exists(std::fs::read_dir(path))? else { return Ok(()) };
    match std::fs::read_to_string(path.join("cgroup.procs")) {
        // Those of another pid namespace are listed as 0.
        Ok(text) => {
            text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1).for_each(&mut *found)
        }
        // It was removed, or is one of threads, whose processes are listed above it.
        Err(error) if is_gone(&error) || error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            in_cgroup(&entry.path(), found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
