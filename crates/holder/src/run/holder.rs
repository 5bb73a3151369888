//! The holder's one loop: wait, look who has something to say, do what is due.

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::agent::Agent;
use super::clocks::{ACCEPT, Clocks, FLUSH_PART, SILENCE};
use super::hint::Hint;
use super::inputs::{Delivered, Inputs};
use super::log::Log;
use super::peers::{self, Peer};
use super::pump::{PipeRead, Pump};
use super::reserve::Reserve;
use super::signals::Signals;
use super::stderr::StderrLog;
use super::stop::Stop;
use crate::dir::{EpochNote, HolderDir, Launch};
use crate::identity::Identity;
use crate::journal::{Body, Delivery, JournalWriter};
use crate::wire::{Event, Marks, Phase, Secret};

/// How often the pipe is read before others get their turn.
const READS_A_TURN: usize = 16;

pub(super) struct Holder {
    pub(super) dir: HolderDir,
    pub(super) launch: Launch,
    pub(super) secret: Secret,
    pub(super) lock: File,
    pub(super) signals: Signals,
    pub(super) journal: JournalWriter,
    pub(super) listener: Option<UnixListener>,
    pub(super) socket_inode: u64,
    pub(super) epoch: EpochNote,
    pub(super) own: Identity,
    pub(super) peers: Vec<Peer>,
    pub(super) agent: Option<Agent>,
    pub(super) pump: Pump,
    pub(super) inputs: Inputs,
    pub(super) stderr: StderrLog,
    pub(super) reserve: Reserve,
    pub(super) log: Log,
    pub(super) clocks: Clocks,
    pub(super) acked: u64,
    /// What keeps the journal from being written, and so the agent from being read.
    pub(super) trouble: Option<String>,
    /// That is only a bound of ours: it could be written.
    pub(super) bounded: bool,
    /// Records that could not be written yet.
    pub(super) owed: Vec<(Body<'static>, Vec<u8>)>,
    pub(super) stop: Option<Stop>,
    /// When the agent's end was seen, and until when its pipe is read.
    pub(super) draining: Option<(Instant, Instant)>,
    /// How often anything has passed, so that a hint can be told from an old one.
    pub(super) activity: u64,
    /// The supervisor said that the agent was idle, at this activity.
    pub(super) idle_at: Option<u64>,
    pub(super) detached_limit: Duration,
    /// How often in a row our directory was not ours.
    pub(super) strikes: u32,
    /// Bytes of the journal when the free room was last looked at.
    pub(super) room_looked_at: u64,
    pub(super) status_file: Hint,
    pub(super) epoch_file: Hint,
    /// The file with the epoch is behind.
    pub(super) epoch_owed: bool,
    pub(super) finished: bool,
}

/// Who a descriptor belongs to.
#[derive(Clone, Copy)]
enum Who {
    Signals,
    Door,
    Stdin,
    Stdout,
    Stderr,
    Peer(usize),
}

impl Holder {
    pub(super) fn run(&mut self) {
        while !self.finished {
            for who in self.wait() {
                self.turn(who);
            }
            self.handle_signals();
            // Before anything that waits for the disk.
            self.notify_peers();
            self.run_due_tasks();
            self.notify_peers();
            self.remove_gone_peers();
        }
    }

    /// Tells everyone of news.
    fn notify_peers(&mut self) {
        let head = self.journal.head();
        for peer in &mut self.peers {
            peer.wake(head);
            peer.flush();
        }
    }

    /// Waits for the next thing to happen.
    fn wait(&mut self) -> Vec<Who> {
        let timeout = self.next_deadline().saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: timeout.as_secs().min(3600) as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut who = vec![Who::Signals];
        let mut fds = vec![PollFd::new(&self.signals.wake, PollFlags::IN)];
        if let Some(listener) = self.listener.as_ref().filter(|_| self.clocks.accept.is_none()) {
            who.push(Who::Door);
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        if let Some(agent) = &self.agent {
            let stdin = agent.stdin.as_ref().filter(|_| self.inputs.is_waiting());
            let stdout = agent.stdout.as_ref().filter(|_| self.trouble.is_none());
            let wanted = [
                (Who::Stdin, stdin, PollFlags::OUT),
                (Who::Stdout, stdout, PollFlags::IN),
                (Who::Stderr, agent.stderr.as_ref(), PollFlags::IN),
            ];
            for (name, fd, flags) in wanted {
                if let Some(fd) = fd {
                    who.push(name);
                    fds.push(PollFd::new(fd, flags));
                }
            }
        }
        for (index, peer) in self.peers.iter().enumerate() {
            let write = if peer.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            who.push(Who::Peer(index));
            fds.push(PollFd::new(&peer.stream, PollFlags::IN | write));
        }
        if poll(&mut fds, Some(&timeout)).is_err() {
            // Interrupted by a signal; whatever else it may be, looking again is all there is to do.
            return vec![Who::Signals];
        }
        fds.iter().zip(who).filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, who)| who).collect()
    }

    fn turn(&mut self, who: Who) {
        match who {
            Who::Signals => self.signals.drain(),
            Who::Door => {
                let Some(listener) = &self.listener else { return };
                let before = self.peers.len();
                if !peers::accept(listener, &mut self.peers, &self.own, &mut self.log) {
                    Clocks::set(&mut self.clocks.accept, ACCEPT);
                }
                // Whoever comes has usually said something already.
                (before..self.peers.len()).for_each(|index| self.serve(index));
            }
            Who::Stdin => self.deliver(),
            Who::Stdout => self.read_output(),
            Who::Stderr => self.read_errors(),
            Who::Peer(index) => {
                self.peers[index].flush();
                self.serve(index);
            }
        }
    }

    pub(super) fn read_output(&mut self) {
        for _ in 0..READS_A_TURN {
            let Some(pipe) = self.agent.as_ref().and_then(|agent| agent.stdout.as_ref()) else { return };
            let read = self.pump.read(std::os::fd::AsFd::as_fd(pipe));
            if let Err(error) = self.pump.flush(&mut self.journal) {
                return self.degrade(&error);
            }
            match read {
                PipeRead::Some | PipeRead::Last => {
                    self.record_activity();
                    if let Some((_, until)) = &mut self.draining {
                        *until = Instant::now() + SILENCE;
                    }
                    if self.trouble.is_some() {
                        return;
                    }
                    if read == PipeRead::Last {
                        break;
                    }
                }
                PipeRead::Nothing => break,
                PipeRead::End => {
                    if let Some(agent) = &mut self.agent {
                        agent.stdout = None;
                    }
                    return;
                }
            }
        }
        if !self.pump.is_empty() {
            Clocks::set(&mut self.clocks.flush_part, FLUSH_PART);
        }
    }

    fn read_errors(&mut self) {
        let mut bytes = [0; 8192];
        for _ in 0..READS_A_TURN {
            let Some(agent) = &mut self.agent else { return };
            let Some(pipe) = &agent.stderr else { return };
            match rustix::io::read(pipe, &mut bytes) {
                Ok(0) => agent.stderr = None,
                Ok(count) => {
                    self.stderr.write(&bytes[..count]);
                    continue;
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => {}
                Err(_) => agent.stderr = None,
            }
            return;
        }
    }

    fn deliver(&mut self) {
        loop {
            let Some(pipe) = self.agent.as_ref().and_then(|agent| agent.stdin.as_ref()) else { return };
            match self.inputs.deliver(&self.journal, std::os::fd::AsFd::as_fd(pipe)) {
                Delivered::Whole(input) => {
                    self.append_record(Body::InDone { input, delivery: Delivery::Delivered }, Vec::new());
                    let delivered = Event::Delivered { input };
                    self.peers
                        .iter_mut()
                        .filter(|peer| peer.is_controller())
                        .for_each(|peer| peer.send(&delivered));
                    self.record_activity();
                }
                Delivered::Waiting => return,
                Delivered::Closed(unfinished) => return self.close_input(unfinished),
            }
        }
    }

    /// Returns how far everything has come.
    pub(super) fn marks(&self) -> Marks {
        Marks {
            phase: self.phase(),
            epoch: self.epoch.epoch,
            head: self.journal.head(),
            acked: self.acked,
            accepted: self.inputs.accepted,
            delivered: self.inputs.delivered,
            agent: self.agent.as_ref().map(|agent| agent.identity.clone()),
            trouble: self.trouble.clone(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match &self.agent {
            _ if self.finished => Phase::Exited,
            _ if self.stop.is_some() => Phase::Stopping,
            None => Phase::AwaitingStart,
            Some(agent) if agent.ended.is_some() => Phase::Exited,
            Some(_) if self.trouble.is_some() => Phase::Blocked,
            Some(_) => Phase::Running,
        }
    }
}
