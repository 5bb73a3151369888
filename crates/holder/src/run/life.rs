//! The agent's life as the holder sees it: its start, what is due meanwhile, its end and what is left of it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, wait};

use super::agent::{Agent, Ended};
use super::cgroup;
use super::clocks::{Clocks, SILENCE};
use super::holder::Holder;
use super::inputs::Delivered;
use super::signals::Signals;
use super::start_up;
use super::stop::Stop;
use crate::dir::{ExitNote, ExitReason, StatusNote};
use crate::identity::Identity;
use crate::journal::{Body, Ctl, Delivery};
use crate::stamp::Stamp;
use crate::wire::{Event, Preamble, Start};

/// After the agent's end its pipe is not read longer than this in all.
const MOST_DRAINING: Duration = Duration::from_secs(10);
/// How long those left behind may take to be gone after they were killed.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// Looks in a row that did not find our directory before we believe it: five seconds apart.
const STRIKES: u32 = 3;

impl Holder {
    pub(super) fn start_agent(&mut self, start: &Start) -> io::Result<Identity> {
        self.append_ctl(&Ctl::Start { instance: self.epoch.instance.clone(), epoch: self.epoch.epoch }, true);
        if self.trouble.is_some() {
            // An agent that no journal knows of could never be told from one that never ran.
            self.owed.retain(|(body, _)| !matches!(body, Body::Ctl(Ctl::Start { .. })));
            return Err(io::ErrorKind::StorageFull.into());
        }
        match Agent::start(&self.launch, &start.env) {
            Ok(agent) => {
                let identity = agent.identity.clone();
                let started = Ctl::Started { pid: identity.pid, start_ticks: identity.start_ticks };
                self.agent = Some(agent);
                self.append_ctl(&started, false);
                self.record_activity();
                self.write_status();
                Ok(identity)
            }
            Err(error) => {
                self.append_ctl(&Ctl::StartFailed { error: error.to_string() }, true);
                let stop =
                    Stop::begin(ExitReason::StartFailed, None, Some(error.to_string()), Duration::ZERO);
                self.stop = Some(stop);
                Err(error)
            }
        }
    }

    pub(super) fn handle_signals(&mut self) {
        if Signals::take(&self.signals.terminate) {
            self.append_ctl(&Ctl::Signal { name: "SIGTERM".into() }, false);
            self.begin_stop(ExitReason::HolderSigterm, None, None, self.grace());
        }
        if Signals::take(&self.signals.rebind) {
            self.rebind();
        }
        if Signals::take(&self.signals.child) {
            let _ = self.collect();
        }
    }

    /// Collects whoever has ended: orphans of the agent's tree come to us as well. Tells whether nobody is left below
    /// us: then nobody is left of the tree, because whoever loses its parent there becomes our child.
    fn collect(&mut self) -> bool {
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => ended,
                Ok(None) => return false,
                Err(error) => return error == Errno::CHILD,
            };
            let Some(agent) = &mut self.agent else { continue };
            if agent.identity.pid == pid.as_raw_nonzero().get() {
                agent.ended = Some(Ended { code: status.exit_status(), signal: status.terminating_signal() });
                let now = Instant::now();
                self.draining = Some((now, now + SILENCE));
            }
        }
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.launch.limits.grace_ms)
    }

    /// Begins the agent's end; one that is under way is only hurried.
    pub(super) fn begin_stop(
        &mut self,
        reason: ExitReason,
        actor: Option<String>,
        detail: Option<String>,
        grace: Duration,
    ) {
        if let Some(stop) = &mut self.stop {
            return stop.hurry(grace);
        }
        let (why, who) = (detail.clone().unwrap_or_else(|| reason.word()), actor.clone());
        self.append_ctl(&Ctl::Stop { reason: why, actor: who.unwrap_or_else(|| "holder".into()) }, true);
        self.stop = Some(Stop::begin(reason, actor, detail, grace));
        if let Delivered::Closed(unfinished) = self.inputs.close() {
            self.close_input(unfinished);
        }
        self.write_status();
    }

    /// The agent gets no more input; one that it had part of is said not to have arrived.
    pub(super) fn close_input(&mut self, unfinished: Option<u64>) {
        if let Some(agent) = &mut self.agent {
            agent.stdin = None;
        }
        if let Some(input) = unfinished {
            self.append_record(Body::InDone { input, delivery: Delivery::Failed }, Vec::new());
        }
    }

    pub(super) fn interrupt(&mut self) {
        if let Some(agent) = self.agent.as_ref().filter(|agent| agent.ended.is_none()) {
            let _ = crate::tree::signal_exactly(&agent.identity, Signal::INT);
        }
    }

    pub(super) fn apply_hint(&mut self, state: &str, max_detached_ms: Option<u64>) {
        self.idle_at = (state == "idle").then_some(self.activity);
        if let Some(limit) = max_detached_ms {
            self.detached_limit = Duration::from_millis(limit);
        }
    }

    /// An idle agent may go: nothing has passed since it was said to be idle.
    pub(super) fn may_retire(&self) -> bool {
        self.idle_at == Some(self.activity) || self.agent.as_ref().is_none_or(|agent| agent.ended.is_some())
    }

    /// Does everything whose time has come.
    pub(super) fn run_due_tasks(&mut self) {
        let now = Instant::now();
        if std::mem::take(&mut self.epoch_owed) {
            self.write_epoch();
        }
        if Clocks::take_due(&mut self.clocks.flush_part, now)
            && self.trouble.is_none()
            && let Err(error) = self.pump.flush_part(&mut self.journal)
        {
            self.degrade(&error);
        }
        if Clocks::take_due(&mut self.clocks.sync_output, now) {
            self.sync();
        }
        self.retry(now);
        let _ = Clocks::take_due(&mut self.clocks.accept, now);
        if Clocks::take_due(&mut self.clocks.trim, now) {
            self.trim();
        }
        if Clocks::take_due(&mut self.clocks.status, now) {
            self.write_status();
        }
        if self.clocks.take_due_check(now) {
            self.check_socket_and_dir();
        }
        self.peers.iter_mut().for_each(|peer| peer.drop_if_late(now));
        if let Some((at, reason)) = self.unattended_deadline()
            && now >= at
            && self.stop.is_none()
        {
            self.begin_stop(reason, None, None, self.grace());
        }
        self.advance_end(now);
    }

    fn advance_end(&mut self, now: Instant) {
        let Some(agent) = &self.agent else {
            if self.stop.is_some() && self.can_write() {
                self.finish(true);
            }
            return;
        };
        if agent.ended.is_none() {
            let tree = agent.tree(&self.launch.holder_id);
            if let Some(stop) = &mut self.stop
                && stop.proceed(&tree, now)
            {
                self.finish(false);
            }
            return;
        }
        let Some((ended, until)) = self.draining else { return };
        let drained = agent.stdout.is_none();
        let enough = drained || now >= until || now >= ended + MOST_DRAINING;
        // While the disk is full the end waits too: what the agent said last is still to be written.
        if enough && self.can_write() {
            self.finish(drained);
        }
    }

    /// Writes everything down and ends.
    fn finish(&mut self, drained: bool) {
        if let Err(error) = self.pump.finish(&mut self.journal) {
            return self.degrade(&error);
        }
        let left = self.kill_tree();
        let ended = self.agent.as_ref().and_then(|agent| agent.ended);
        let (code, signal) = ended.map_or((None, None), |ended| (ended.code, ended.signal));
        self.append_ctl(&Ctl::Exit { code, signal }, true);
        if !self.can_write() {
            return;
        }
        let stop = self.stop.take();
        let note = ExitNote {
            code,
            signal,
            reason: stop.as_ref().map_or(ExitReason::AgentExit, |stop| stop.reason),
            actor: stop.as_ref().and_then(|stop| stop.actor.clone()),
            detail: stop.and_then(|stop| stop.detail),
            last_seq: self.journal.head(),
            drained,
            left,
            cpu_ms: collected_cpu_ms(),
            stderr_tail: self.stderr.tail(),
            at: Stamp::now().to_string(),
        };
        self.reserve.release();
        let bytes = serde_json::to_vec(&note).unwrap_or_default();
        if let Err(error) = self.dir.replace(&self.dir.exit(), &bytes, true) {
            self.log.write_line(&format!("cannot write how it ended: {error}"));
        }
        self.finished = true;
        self.write_status();
        let head = self.journal.head();
        for peer in self.peers.iter_mut().filter(|peer| !peer.is_stranger()) {
            peer.wake(head);
            peer.send(&Event::Exited { code, signal });
            peer.send_last_words();
        }
        if let Some(cgroup) = self.agent.as_ref().and_then(|agent| agent.cgroup.as_ref()) {
            cgroup::remove(cgroup);
        }
        let _ = std::fs::remove_file(&self.launch.socket);
    }

    /// Ends whoever is left of the agent's tree; returns those that would not go.
    fn kill_tree(&mut self) -> Vec<Identity> {
        let Some(tree) = self.agent.as_ref().map(|agent| agent.tree(&self.launch.holder_id)) else {
            return Vec::new();
        };
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            // The kernel says so, which costs less than looking at every process of the machine.
            let empty = tree.cgroup.as_ref().is_none_or(|cgroup| cgroup::is_empty(cgroup));
            if self.collect() && empty {
                return Vec::new();
            }
            // Again in every round: what is being killed may still have forked.
            let _ = tree.signal(Signal::KILL);
            let _ = self.collect();
            let left = tree.members().unwrap_or_default();
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            self.signals.wait(Duration::from_millis(10));
        }
    }

    /// When nobody having come is reason enough to end, and which reason.
    fn unattended_deadline(&self) -> Option<(Instant, ExitReason)> {
        if self.agent.is_none() {
            let wait = Duration::from_millis(self.launch.limits.start_ms);
            return Some((self.clocks.started + wait, ExitReason::NeverStarted));
        }
        let idle = self.idle_at == Some(self.activity);
        let limit =
            if idle { Duration::from_millis(self.launch.limits.idle_ms) } else { self.detached_limit };
        let since = self.clocks.detached?;
        (!limit.is_zero()).then_some((since + limit, ExitReason::Unattended))
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let peers = self.peers.iter().filter_map(|peer| peer.deadline());
        let stop = self.stop.as_ref().map(|stop| stop.deadline);
        let draining = self.draining.map(|(ended, until)| until.min(ended + MOST_DRAINING));
        let unattended_deadline =
            self.unattended_deadline().filter(|_| self.stop.is_none()).map(|(at, _)| at);
        // While in trouble the end waits for the retry.
        let end = [stop, draining].into_iter().flatten().filter(|_| self.can_write());
        end.chain(peers).chain(unattended_deadline).fold(self.clocks.next(), Instant::min)
    }

    /// Lets go of those who left; the last one who commanded starts the clock.
    pub(super) fn remove_gone_peers(&mut self) {
        let commanded = self.peers.iter().any(|peer| peer.is_controller() && peer.is_gone());
        self.peers.retain(|peer| !peer.is_gone());
        if commanded && !self.finished && !self.peers.iter().any(|peer| peer.is_controller()) {
            self.inputs.drop_arriving();
            self.append_ctl(&Ctl::Detach { reason: "the connection ended".into() }, false);
            self.clocks.detached = Some(Instant::now());
            self.write_status();
        }
    }

    /// Looks whether the socket and the directory are still ours.
    fn check_socket_and_dir(&mut self) {
        let bound = std::fs::metadata(&self.launch.socket).map(|metadata| metadata.ino());
        if bound.ok() != Some(self.socket_inode) {
            self.rebind();
        }
        let named = std::fs::metadata(self.dir.lock()).map(|metadata| (metadata.dev(), metadata.ino())).ok();
        let own = self.lock.metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
        self.strikes = if named == own { 0 } else { self.strikes + 1 };
        if self.strikes >= STRIKES {
            self.begin_stop(ExitReason::DirectoryGone, None, None, self.grace());
        }
    }

    fn rebind(&mut self) {
        if let Some(parent) = self.launch.socket.parent() {
            let _ = std::fs::create_dir_all(parent);
        }
        match start_up::bind(&self.launch.socket) {
            Ok(listener) => {
                self.listener = Some(listener);
                self.socket_inode =
                    std::fs::metadata(&self.launch.socket).map_or(0, |metadata| metadata.ino());
                self.log.write_line("bound the socket again");
            }
            Err(error) => self.log.write_line(&format!("cannot bind the socket again: {error}")),
        }
    }

    pub(super) fn write_status(&mut self) {
        let detached = self.clocks.detached.map(|since| {
            let ago = u64::try_from(since.elapsed().as_millis()).unwrap_or(0);
            Stamp(Stamp::now().0.saturating_sub(ago)).to_string()
        });
        let note = StatusNote {
            phase: self.phase(),
            holder: self.own.clone(),
            agent: self.agent.as_ref().map(|agent| agent.identity.clone()),
            cgroup: self.agent.as_ref().and_then(|agent| agent.cgroup.clone()),
            socket: self.launch.socket.clone(),
            versions: (Preamble::OURS.low, Preamble::OURS.high),
            features: Preamble::OURS.features,
            epoch: self.epoch.epoch,
            head: self.journal.head(),
            acked: self.acked,
            accepted: self.inputs.accepted,
            detached_since: detached,
            trouble: self.trouble.clone(),
        };
        self.status_file.write(&serde_json::to_vec(&note).unwrap_or_default());
    }

    /// A copy: the journal has it already.
    pub(super) fn write_epoch(&mut self) {
        self.epoch_file.write(&serde_json::to_vec(&self.epoch).unwrap_or_default());
    }
}

/// Processor time of everything we have collected, by the kernel's own account.
fn collected_cpu_ms() -> u64 {
    /// Ticks a second in `/proc`, the same on every Linux of today.
    const TICKS: u64 = 100;
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = line.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        rest.split_ascii_whitespace().skip(13).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks * 1000 / TICKS
}
