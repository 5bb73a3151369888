//! The port through which a worker meets scripted holders.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{
    self, ConnectError, FollowError, Harvest, HarvestError, Inspection, Keeper, LockState, PathError,
    PrepareError, Prepared, RemoveError, RequestError, SpawnError, Spec, Started,
};
use rekindle_holder::dir::{EpochNote, ExitNote, ExitReason, FORMAT, HolderDir, Launch, LockNote};
use rekindle_holder::identity::{Identity, machine_boot};
use rekindle_holder::journal::{Ctl, Delivery, InputHead, Item};
use rekindle_holder::wire::{Event, Marks, Phase, Refusal, Refused};

use super::agent::{Agent, Memory};
use super::holder::{Holder, NOW, Scripted, identity};
use crate::drive::holders::{Control, HolderPaths, Holders, Journal};

/// The way to them that a worker has.
pub(super) struct Port(pub(super) Arc<Scripted>);

impl Holders for Port {
    fn find(&self, _: &Path, state: &SessionState) -> AgentPresence {
        let Some(agent) = state.agent.as_ref().filter(|agent| !agent.exited) else {
            return AgentPresence::Nobody;
        };
        let mut world = self.0.world();
        let rebooted = world.rebooted;
        match world.by_name(&agent.holder_id.to_string()) {
            Ok(holder) if holder.lives => AgentPresence::Lives,
            Ok(_) => AgentPresence::Dead,
            Err(_) => AgentPresence::Vanished { rebooted },
        }
    }

    fn list(&self, holders: &Path) -> io::Result<Vec<Inspection>> {
        let world = self.0.world();
        let there = world.holders.iter().filter(|(_, holder)| !holder.removed);
        let inspected = there.map(|(name, holder)| Inspection {
            dir: HolderDir::new(holders.join(name)),
            holder_id: name.clone(),
            launch: client::FileContents::There(holder.launch.clone()),
            lock: match holder.lives {
                true => LockState::Held { note: None, by: Keeper::Holder },
                false => LockState::Free { note: None },
            },
            exit: client::FileContents::Missing,
            epoch: client::FileContents::There(holder.epoch.clone()),
            status: client::FileContents::Missing,
            other_boot: Some(world.rebooted),
        });
        Ok(inspected.collect())
    }

    fn prepare(&self, places: &HolderPaths, spec: Spec) -> Result<Prepared, PrepareError> {
        let mut world = self.0.world();
        let life = world.lives.front().cloned().unwrap_or_default();
        if let Some(code) = life.errno("prepare") {
            world.lives.pop_front();
            let source = io::Error::from_raw_os_error(code);
            return Err(PathError { doing: "make", path: places.holders.clone(), source }.into());
        }
        world.made += 1;
        let files = world.files.clone();
        let holder_id = format!("h_{:032x}", world.made);
        let launch = Launch {
            format: FORMAT,
            holder_id: holder_id.clone(),
            session_id: spec.session_id,
            attempt: spec.attempt,
            agent: spec.agent,
            profile: spec.profile.clone(),
            argv: spec.argv,
            cwd: spec.cwd,
            fingerprint: String::new(),
            env_names: spec.env_names,
            umask: spec.umask,
            socket: "/run/socket".into(),
            machine_boot: machine_boot().expect("a boot"),
            executable: String::new(),
            limits: spec.limits,
        };
        let holder = Holder {
            launch: launch.clone(),
            agent: Agent::new(life.clone(), &spec.profile).in_directory(files),
            life,
            lives: false,
            phase: Phase::AwaitingStart,
            mute: false,
            removed: false,
            copied: false,
            left: false,
            items: Vec::new(),
            accepted: 0,
            events: VecDeque::new(),
            exit: None,
            epoch: EpochNote { epoch: 0, instance: String::new() },
        };
        world.holders.insert(holder_id.clone(), holder);
        let dir = HolderDir::new(places.holders.join(holder_id));
        let executable = places.executable.path.clone();
        Ok(Prepared { dir, launch, executable, path: "".into(), ready_within: Duration::ZERO })
    }

    fn start(&self, _: &HolderPaths, prepared: &Prepared) -> Result<(), SpawnError> {
        let mut world = self.0.world();
        // A life begins with the process: what was only prepared has had none.
        world.lives.pop_front();
        let holder = world.get(&prepared.dir).expect("it was prepared");
        if let Some(code) = holder.life.errno("spawn") {
            return Err(SpawnError::Refused { message: io::Error::from_raw_os_error(code).to_string() });
        }
        if holder.life.setting("spawn") == Some("died") {
            return Err(SpawnError::Died { status: None });
        }
        holder.lives = true;
        Ok(())
    }

    fn connect(
        &self,
        dir: &HolderDir,
        instance: &str,
        epoch: u64,
        within: Duration,
    ) -> Result<Box<dyn Control>, ConnectError> {
        let mut world = self.0.world();
        let socket = || "/run/socket".into();
        let holder = world.get(dir).map_err(|_| ConnectError::NoSocket { socket: socket() })?;
        match holder.life.setting("connect") {
            Some("hang") if holder.life.settle("connect") => {
                holder.mute = true;
                return Err(ConnectError::Timeout { after: within });
            }
            _ if !holder.lives => return Err(ConnectError::NoSocket { socket: socket() }),
            _ if holder.mute => return Err(ConnectError::Timeout { after: within }),
            Some("old") => return Err(ConnectError::NoCommonVersion { low: 8, high: 9 }),
            Some("stranger") => {
                let no = Refused { reason: Refusal::Stale, epoch: 99, input: None, expected: None };
                return Err(ConnectError::Refused(no));
            }
            _ => {}
        }
        if holder.epoch.epoch > epoch {
            let epoch = holder.epoch.epoch;
            let no = Refused { reason: Refusal::Stale, epoch, input: None, expected: None };
            return Err(ConnectError::Refused(no));
        }
        holder.epoch = EpochNote { epoch, instance: instance.to_owned() };
        holder.note(Ctl::Attach { instance: instance.to_owned(), epoch });
        holder.events.clear();
        let agent = (holder.phase != Phase::AwaitingStart).then(|| identity(20, &holder.launch.machine_boot));
        let marks = Marks {
            phase: holder.phase,
            epoch,
            head: holder.items.len() as u64,
            acked: 0,
            accepted: holder.accepted,
            delivered: holder.accepted,
            agent,
            trouble: None,
        };
        Ok(Box::new(Command { scripted: self.0.clone(), name: dir.name(), marks }))
    }

    fn follow(&self, dir: &HolderDir, from: u64) -> Box<dyn Journal> {
        Box::new(Reading { scripted: self.0.clone(), name: dir.name(), next: from.max(1) })
    }

    fn launch(&self, dir: &HolderDir) -> io::Result<Launch> {
        self.0.world().get(dir).map(|holder| holder.launch.clone())
    }

    fn lock(&self, dir: &HolderDir) -> io::Result<LockNote> {
        let launch = self.launch(dir)?;
        let process = identity(10, &launch.machine_boot);
        Ok(LockNote { holder_id: launch.holder_id, process, device: 1, inode: 1 })
    }

    fn epoch(&self, dir: &HolderDir) -> Option<EpochNote> {
        self.0.world().get(dir).ok().map(|holder| holder.epoch.clone())
    }

    fn exit(&self, dir: &HolderDir, _: Duration) -> Option<ExitNote> {
        self.0.world().get(dir).ok().and_then(|holder| holder.exit.clone())
    }

    fn is_copied(&self, dir: &HolderDir) -> bool {
        self.0.world().get(dir).is_ok_and(|holder| holder.copied)
    }

    fn harvest(&self, dir: &HolderDir) -> Result<Harvest, HarvestError> {
        let mut world = self.0.world();
        let holder = world.get(dir).map_err(HarvestError::Processes)?;
        let left = if holder.left { vec![identity(21, "boot")] } else { Vec::new() };
        Ok(Harvest {
            exit: holder.exit.clone(),
            exit_unreadable: None,
            damage: None,
            last_seq: holder.items.len() as u64,
            started: Started::Yes,
            agent: None,
            copied: holder.copied,
            tree_gone: left.is_empty(),
            left,
        })
    }

    fn exists(&self, dir: &HolderDir) -> bool {
        self.0.world().get(dir).is_ok()
    }

    fn remove(&self, dir: &HolderDir) -> Result<(), RemoveError> {
        let mut world = self.0.world();
        if let Ok(holder) = world.get(dir) {
            holder.removed = true;
        }
        Ok(())
    }
}

struct Command {
    scripted: Arc<Scripted>,
    name: String,
    marks: Marks,
}

impl Command {
    /// Does something with a holder that lives and answers.
    fn ask<T>(
        &self,
        what: impl FnOnce(&mut Holder, &mut Memory) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let mut world = self.scripted.world();
        let mut memory = std::mem::take(&mut world.memory);
        let holder = world.by_name(&self.name).map_err(|_| RequestError::Closed);
        let done = holder.and_then(|holder| match holder {
            holder if !holder.lives => Err(RequestError::Closed),
            holder if holder.mute => Err(RequestError::Timeout { after: Duration::from_secs(2) }),
            holder if holder.epoch.epoch > self.marks.epoch => {
                Err(RequestError::Fenced { by: holder.epoch.epoch })
            }
            holder => what(holder, &mut memory),
        });
        (world.memory, world.news) = (memory, true);
        done
    }
}

impl Control for Command {
    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn start(&mut self, _: BTreeMap<String, String>) -> Result<Identity, RequestError> {
        self.ask(|holder, _| {
            let (instance, epoch) = (holder.epoch.instance.clone(), holder.epoch.epoch);
            holder.note(Ctl::Start { instance, epoch });
            if let Some(code) = holder.life.errno("begin") {
                let error = io::Error::from_raw_os_error(code).to_string();
                holder.note(Ctl::StartFailed { error: error.clone() });
                holder.finish(None, None, ExitReason::StartFailed);
                return Err(RequestError::StartFailed { error });
            }
            holder.note(Ctl::Started { pid: 20, start_ticks: 7 });
            holder.phase = Phase::Running;
            if holder.life.setting("begin") == Some("die") {
                holder.finish(None, Some(9), ExitReason::AgentExit);
            }
            Ok(identity(20, &holder.launch.machine_boot))
        })
    }

    fn input(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<(), RequestError> {
        self.ask(|holder, memory| {
            if number <= holder.accepted {
                return Ok(());
            }
            assert_eq!(number, holder.accepted + 1, "no number is left out");
            holder.accepted = number;
            let seq = holder.seq();
            let head = Box::new(InputHead { input: number, kind: kind.to_owned(), sha256: [0; 32] });
            holder.items.push(Item::Input { first: seq, seq, time: NOW, head, bytes: bytes.to_vec().into() });
            holder.items.push(Item::Done { seq: seq + 1, input: number, delivery: Delivery::Delivered });
            let line = std::str::from_utf8(bytes).expect("text").trim_end();
            let deeds = holder.agent.hear(line, memory);
            holder.act(deeds);
            Ok(())
        })
    }

    fn close_input(&mut self, after: u64) -> Result<(), RequestError> {
        self.ask(|holder, _| {
            holder.note(Ctl::CloseInput { after });
            Ok(())
        })
    }

    fn ack(&mut self, _: u64) -> Result<(), RequestError> {
        Ok(())
    }

    fn stop(&mut self, reason: &str, actor: &str, _: Duration) -> Result<(), RequestError> {
        self.ask(|holder, _| {
            holder.note(Ctl::Stop { reason: reason.to_owned(), actor: actor.to_owned() });
            if holder.life.setting("stop").is_none() {
                holder.finish(None, Some(15), ExitReason::StopRequested);
            }
            Ok(())
        })
    }

    fn beat(&mut self) -> Result<(), RequestError> {
        let asked = self.ask(|holder, _| {
            holder.events.push_back(Event::Pong { word: 1 });
            Ok(())
        });
        match asked {
            // Whoever asks for a sign does not wait for it.
            Err(RequestError::Timeout { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    fn next_event(&mut self) -> Result<Option<Event>, RequestError> {
        let mut world = self.scripted.world();
        let holder = world.by_name(&self.name).map_err(|_| RequestError::Closed)?;
        match holder.events.pop_front() {
            _ if holder.mute => Ok(None),
            None if !holder.lives => Err(RequestError::Closed),
            event => Ok(event),
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Reading {
    scripted: Arc<Scripted>,
    name: String,
    next: u64,
}

impl Journal for Reading {
    fn next_item(&mut self) -> Result<Option<Item<'static>>, FollowError> {
        let mut world = self.scripted.world();
        let Ok(holder) = world.by_name(&self.name) else { return Ok(None) };
        let item = holder.items.get(self.next as usize - 1).cloned();
        self.next += u64::from(item.is_some());
        Ok(item)
    }

    fn finish(&mut self) -> Option<Item<'static>> {
        None
    }

    fn unfinished(&self) -> Option<u64> {
        None
    }

    fn unread(&self) -> io::Result<u64> {
        Ok(0)
    }
}
