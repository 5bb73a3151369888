//! Scripted holders: a journal in memory, a lock that is a flag, and an agent that follows a script.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use rekindle_holder::dir::{EpochNote, ExitNote, ExitReason, HolderDir, Launch};
use rekindle_holder::identity::Identity;
use rekindle_holder::journal::{Ctl, Item, OutFlags};
use rekindle_holder::stamp::Stamp;
use rekindle_holder::wire::{Event, Health, Phase};

use super::agent::{Agent, Deed, Files, Memory};
use super::life::Life;
use crate::lock::locked;

/// When everything happens.
pub(super) const NOW: Stamp = Stamp(1_771_668_000_000);

/// All scripted holders of a home.
#[derive(Default)]
pub(super) struct Scripted(Mutex<World>);

#[derive(Default)]
pub(super) struct World {
    pub(super) lives: VecDeque<Life>,
    pub(super) holders: BTreeMap<String, Holder>,
    pub(super) memory: Memory,
    /// Something has happened that a worker would be woken for.
    pub(super) news: bool,
    pub(super) made: u32,
    /// The machine was started again since the holders were.
    pub(super) rebooted: bool,
    /// The files that agents change, if there are any.
    pub(super) files: Option<Files>,
}

/// One of them.
pub(super) struct Holder {
    pub(super) launch: Launch,
    pub(super) life: Life,
    pub(super) agent: Agent,
    pub(super) lives: bool,
    pub(super) phase: Phase,
    pub(super) mute: bool,
    pub(super) removed: bool,
    pub(super) copied: bool,
    /// Processes of its agent that do not go.
    pub(super) left: bool,
    pub(super) items: Vec<Item<'static>>,
    pub(super) accepted: u64,
    pub(super) events: VecDeque<Event>,
    pub(super) exit: Option<ExitNote>,
    pub(super) epoch: EpochNote,
}

pub(super) fn identity(pid: i32, machine_boot: &str) -> Identity {
    Identity { pid, start_ticks: 7, machine_boot: machine_boot.to_owned() }
}

impl Holder {
    pub(super) fn seq(&self) -> u64 {
        self.items.len() as u64 + 1
    }

    pub(super) fn note(&mut self, ctl: Ctl) {
        let seq = self.seq();
        self.items.push(Item::Ctl { seq, time: NOW, ctl });
    }

    pub(super) fn finish(&mut self, code: Option<i32>, signal: Option<i32>, reason: ExitReason) {
        if reason != ExitReason::StartFailed {
            self.note(Ctl::Exit { code, signal });
        }
        self.events.push_back(Event::Exited { code, signal });
        (self.lives, self.phase) = (false, Phase::Exited);
        self.exit = Some(ExitNote {
            code,
            signal,
            reason,
            actor: None,
            detail: None,
            last_seq: self.items.len() as u64,
            drained: true,
            left: Vec::new(),
            cpu_ms: 0,
            stderr_tail: String::new(),
            at: NOW.to_string(),
        });
    }

    pub(super) fn act(&mut self, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Line(line) => {
                    let (seq, bytes) = (self.seq(), line.into_bytes().into());
                    let flags = OutFlags::default();
                    self.items.push(Item::Line { first: seq, seq, time: NOW, flags, bytes });
                    self.events.push_back(Event::Wake { head: seq });
                }
                Deed::Gone { code, signal } => self.finish(code, signal, ExitReason::AgentExit),
                Deed::Lost => self.lives = false,
                Deed::Mute => self.mute = true,
            }
        }
    }
}

impl World {
    pub(super) fn get(&mut self, dir: &HolderDir) -> io::Result<&mut Holder> {
        self.by_name(&dir.name())
    }

    pub(super) fn by_name(&mut self, name: &str) -> io::Result<&mut Holder> {
        let found = self.holders.get_mut(name).filter(|holder| !holder.removed);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn newest(&mut self) -> &mut Holder {
        self.news = true;
        self.holders.values_mut().next_back().expect("a holder")
    }
}

impl Scripted {
    pub(super) fn new(lives: &[&'static str]) -> Arc<Scripted> {
        let lives = lives.iter().map(|life| Life::parse(life)).collect();
        Arc::new(Scripted(Mutex::new(World { lives, ..World::default() })))
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        locked(&self.0)
    }

    /// Tells whether anything has happened since this was last asked.
    pub(super) fn has_news(&self) -> bool {
        std::mem::take(&mut self.world().news)
    }

    /// Returns how many agents were launched, or nearly.
    pub(super) fn launches(&self) -> usize {
        self.world().holders.len()
    }

    /// Returns how many inputs of a kind any agent was given.
    pub(super) fn given(&self, what: &str) -> usize {
        let is = |item: &&Item<'static>| matches!(item, Item::Input { head, .. } if head.kind == what);
        self.world().holders.values().flat_map(|holder| &holder.items).filter(is).count()
    }

    /// Returns how many agents were started.
    pub(super) fn started(&self) -> usize {
        let is = |item: &&Item<'static>| matches!(item, Item::Ctl { ctl: Ctl::Started { .. }, .. });
        self.world().holders.values().flat_map(|holder| &holder.items).filter(is).count()
    }

    /// Returns how many holders are alive, or have left something.
    pub(super) fn left_behind(&self) -> usize {
        self.world().holders.values().filter(|holder| holder.lives || !holder.removed).count()
    }

    /// Returns how many holders live.
    pub(super) fn living(&self) -> usize {
        self.world().holders.values().filter(|holder| holder.lives).count()
    }

    /// Kills the newest agent.
    pub(super) fn kill(&self) {
        self.world().newest().finish(None, Some(9), ExitReason::AgentExit);
    }

    /// Kills the newest agent's holder, and the agent with it.
    pub(super) fn lose(&self) {
        self.world().newest().lives = false;
    }

    /// Kills the newest agent's holder and removes everything of it.
    pub(super) fn vanish(&self) {
        let mut world = self.world();
        let holder = world.newest();
        (holder.lives, holder.removed) = (false, true);
    }

    /// Has the newest agent's holder say nothing, or speak again.
    pub(super) fn mute(&self, mute: bool) {
        self.world().newest().mute = mute;
    }

    /// Has some of the newest agent's processes stay, or go.
    pub(super) fn leave_behind(&self, left: bool) {
        self.world().newest().left = left;
    }

    /// Has the newest agent's holder be told trouble.
    pub(super) fn trouble(&self, trouble: Option<&str>) {
        let health = Health { trouble: trouble.map(str::to_owned) };
        self.world().newest().events.push_back(Event::Health(health));
    }

    /// Has another daemon command the newest agent's holder.
    pub(super) fn take_away(&self, epoch: u64) {
        self.world().newest().epoch = EpochNote { epoch, instance: "boot_other".to_owned() };
    }

    /// Has the home be a copy.
    pub(super) fn copy(&self) {
        let mut world = self.world();
        let holder = world.newest();
        (holder.copied, holder.lives) = (true, false);
    }

    /// Has the newest agent go on with its turn.
    pub(super) fn go_on(&self) {
        let mut world = self.world();
        let mut memory = std::mem::take(&mut world.memory);
        let holder = world.newest();
        let deeds = holder.agent.go_on(&mut memory);
        holder.act(deeds);
        world.memory = memory;
    }
}
