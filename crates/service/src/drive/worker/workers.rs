//! All workers: who has one, how one is hired, told something and let go, and what others see of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use rekindle_agent::connection::{Delta, Heartbeat};
use rekindle_agent::profile::Profile;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::HolderProof;
use rekindle_domain::recovery::Held;
use rekindle_domain::time::Timestamp;
use rekindle_store::disk::check_descriptors;
use rekindle_store::meter::Gauge;
use rekindle_wire::view::Connection;

use super::Worker;
use super::command::Command;
use super::idle_agents::{IdleAgentPolicy, IdleAgents};
use super::retry::Unattended;
use super::spoken::Spoken;
use crate::budget_check::BudgetCheck;
use crate::drive::agents::Agents;
use crate::drive::checkpoints::CheckpointCounts;
use crate::drive::live::AgentContext;
use crate::drive::workspace_files::RestoreFiles;
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::records::Records;
use crate::session_span::session_span;
use crate::worker_pool::{self, Inbox, Pool, Semaphore};

/// Who is told what workers see and do, and no record tells.
pub(crate) trait Watcher: Send + Sync {
    /// An agent says something.
    fn said(&self, session: SessionId, delta: &Delta);

    /// A session is not what it was, though its log has not grown.
    fn changed(&self, session: SessionId);

    /// A session is gone.
    fn removed(&self, session: SessionId);
}

/// All workers, and what they work with.
pub(crate) struct Workers {
    pub(crate) records: Records,
    pub(crate) agents: Agents,
    /// Whether there is anything left for a run.
    pub(crate) budgets: BudgetCheck,
    /// Who makes directories what trees say.
    pub(crate) files: Arc<dyn RestoreFiles>,
    pub(super) watcher: Arc<dyn Watcher>,
    pub(crate) pool: Pool<SessionId, Seat>,
    pub(super) gate: Semaphore,
    /// Sessions for which no worker could be had.
    pub(crate) missed: Arc<Unattended>,
    /// When agents are ended that have nothing to do, and those that have not.
    pub(super) idle_policy: IdleAgentPolicy,
    pub(super) idle_agents: IdleAgents,
    /// What came of captures of directories.
    pub(crate) checkpoint_counts: CheckpointCounts,
    /// We are not the home's supervisor any more.
    superseded: AtomicBool,
    /// Everything is to stop: nothing begins any more.
    stopping: AtomicBool,
    #[cfg(test)]
    pub(crate) by_hand: worker_pool::ByHand<Seat, Worker>,
}

/// What others see of a worker.
pub(crate) struct Seat {
    pub(crate) inbox: Inbox<Command>,
    pub(super) seen: Mutex<AgentSighting>,
    /// Bytes of the holder's journal that were not read when it was last looked at.
    pub(super) unread: Gauge,
}

/// The last sighting of a session's agent, and the reason why nothing happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSighting {
    pub(crate) holder: Option<HolderProof>,
    pub(crate) held: Option<String>,
    /// Why a session that was cut does not go on by itself.
    pub(crate) held_for: Option<Held>,
    /// Where the connection stands.
    pub(crate) link: Connection,
    /// Its directory is being captured, and a prompt waits for that.
    pub(crate) capturing: bool,
    pub(crate) checkpointing: bool,
    /// When the agent last said anything, in a record or not, and what.
    pub(crate) heard_at: Option<Timestamp>,
    /// Its last word for how it is, from agents that say that they are alive.
    pub(crate) health: Option<String>,
    pub(crate) spoken: Spoken,
}

impl worker_pool::Seat for Seat {
    type Command = Command;

    fn inbox(&self) -> &Inbox<Command> {
        &self.inbox
    }
}

impl Seat {
    fn new() -> std::io::Result<Arc<Seat>> {
        let seat = Seat { inbox: Inbox::new()?, seen: Mutex::default(), unread: Gauge::default() };
        Ok(Arc::new(seat))
    }

    /// The agent has said something.
    pub(crate) fn note_delta(&self, now: Timestamp, delta: &Delta) {
        let mut seen = locked(&self.seen);
        // What was said while nobody was there was not said just now. A time to come is none.
        seen.heard_at = Some(delta.said_at.map_or(now, |said_at| said_at.min(now)));
        seen.spoken.note(delta);
    }

    /// The agent has said that it is alive.
    pub(crate) fn note_heartbeat(&self, now: Timestamp, heartbeat: &Heartbeat) {
        let mut seen = locked(&self.seen);
        seen.heard_at = Some(heartbeat.at.map_or(now, |at| at.min(now))).max(seen.heard_at);
        seen.health = Some(heartbeat.status.clone()).filter(|status| !status.is_empty());
    }

    pub(crate) fn sighting(&self) -> AgentSighting {
        locked(&self.seen).clone()
    }
}

impl Workers {
    pub(crate) fn new(
        records: Records,
        agents: Agents,
        budgets: BudgetCheck,
        files: Arc<dyn RestoreFiles>,
        watcher: Arc<dyn Watcher>,
    ) -> Workers {
        Workers {
            records,
            agents,
            budgets,
            files,
            watcher,
            pool: Pool::default(),
            gate: Semaphore::default(),
            missed: Arc::default(),
            idle_policy: IdleAgentPolicy::KEEP_ALL,
            idle_agents: IdleAgents::default(),
            checkpoint_counts: CheckpointCounts::default(),
            superseded: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            #[cfg(test)]
            by_hand: Mutex::default(),
        }
    }

    /// Has idle agents ended.
    pub(crate) fn with_idle_policy(self, idle_policy: IdleAgentPolicy) -> Workers {
        Workers { idle_policy, ..self }
    }

    /// Returns the context of a session's agent.
    pub(super) fn context(&self, session: SessionId, profile: Arc<dyn Profile>) -> AgentContext {
        let (store, holders) = (self.records.store.clone(), self.agents.holders.clone());
        AgentContext { store, session, holders, profile, supervisor: self.agents.supervisor }
    }

    /// Tells whether another daemon commands the agents of this home.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    pub(super) fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Tells whether everything is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// From here on nothing begins, whatever is asked for.
    pub(crate) fn begin_to_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Gives a session's worker something to do, hiring one if there is none. If none can be had just now, what the log says
    /// is done as soon as one can; only what somebody waits for is an error.
    pub(crate) fn send(self: &Arc<Workers>, session: SessionId, command: Command) -> Result<()> {
        let follows_from_log =
            matches!(command, Command::Look | Command::Retell | Command::Prompt(..) | Command::Tidy(_));
        let told = self.hire(session, command);
        match &told {
            Err(error) if follows_from_log => {
                session_span(session)
                    .in_scope(|| tracing::warn!("the daemon cannot work on it yet: {}", error.text()));
                let why = format!("the daemon cannot work on it yet: {}", error.text());
                self.missed.add(session, why);
                return Ok(());
            }
            Err(_) => {}
            Ok(()) => self.missed.remove(session),
        }
        told
    }

    /// Gives a session's worker something to do, and waits for what comes of it.
    pub(crate) fn ask<T>(
        self: &Arc<Workers>,
        session: SessionId,
        command: impl FnOnce(SyncSender<Result<T>>) -> Command,
    ) -> Result<T> {
        let (reply, answer) = sync_channel(1);
        self.send(session, command(reply))?;
        answer.recv().unwrap_or_else(|_| Err(ServiceError::leaving()))
    }

    fn hire(self: &Arc<Workers>, session: SessionId, command: Command) -> Result<()> {
        #[cfg(test)]
        if let Some(hired) = locked(&self.by_hand).as_mut() {
            if self.pool.get(session).is_none() {
                hired.push(self.hire_by_hand(session));
            }
            self.send_if_present(session, command);
            return Ok(());
        }
        let name = format!("s-{}", short(session));
        let hired = self.pool.send(session, command, &name, || {
            check_descriptors()?;
            let seat = Seat::new()?;
            let worker = Worker::new(self, session, &seat);
            Ok((seat, worker))
        });
        hired.map_err(ServiceError::internal)
    }

    /// Hires a worker that has no thread: whoever has it has it work.
    #[cfg(test)]
    pub(crate) fn hire_by_hand(self: &Arc<Workers>, session: SessionId) -> (Arc<Seat>, Worker) {
        let seat = Seat::new().expect("a bell");
        self.pool.add(session, seat.clone());
        (seat.clone(), Worker::new(self, session, &seat))
    }

    /// Returns how many workers there are, and how many bytes of journals they have not read yet.
    pub(crate) fn load(&self) -> (usize, u64) {
        let seats = self.pool.seats();
        (seats.len(), seats.iter().map(|seat| seat.unread.get()).sum())
    }

    /// Tells whether the directory of any session is being captured.
    pub(crate) fn any_capturing(&self) -> bool {
        self.pool.seats().iter().any(|seat| locked(&seat.seen).capturing)
    }

    /// Tells a session's worker, if it has one.
    pub(crate) fn send_if_present(&self, session: SessionId, command: Command) {
        if let Some(seat) = self.pool.get(session) {
            seat.inbox.push(command);
        }
    }

    /// Tells all workers.
    pub(crate) fn broadcast(&self, command: impl Fn() -> Command) {
        self.pool.seats().iter().for_each(|seat| seat.inbox.push(command()));
    }
}

fn short(session: SessionId) -> String {
    let text = session.to_string();
    text.chars().skip(text.len().saturating_sub(12)).collect()
}
