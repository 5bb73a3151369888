//! One worker for each session that has something to do, on a thread of its own: everything that changes the session's
//! course passes through it, one thing after the other. It asks what is to be done, does it, and asks again, so that
//! recovery after a crash is nothing else than going on.

mod add_worktree;
mod adopt;
mod begin;
mod checkpoint;
mod command;
mod commands;
mod damaged;
mod external_wait;
mod heartbeat;
mod idle_agents;
mod idleness;
mod restore_files;
mod retry;
mod spoken;
mod step;
mod supervise;
mod workers;

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::{AgentPresence, Held};
use rekindle_domain::time::Timestamp;
use rekindle_store::crash_report::at_work;
use tracing::Span;

use checkpoint::Captures;
pub(crate) use command::{Answering, Cancelled, Cancelling, Command, Opening};
pub(crate) use external_wait::is_expired;
use heartbeat::Pulse;
pub use idle_agents::IdleAgentPolicy;
use idleness::Idleness;
use step::MOST_SILENCE;
pub(crate) use workers::{AgentSighting, Seat, Watcher, Workers};

use crate::drive::connection_state::ConnectionEvent;
use crate::drive::live::{LiveAgent, UnsentPrompt};
use crate::lock::locked;
use crate::session_span::session_span;
use crate::test_knobs::hurried;
use crate::ticks;
use crate::worker_pool::{BackOff, Rest, Work};

/// A worker that has nothing to do and no agent ends after this.
const IDLE: Duration = Duration::from_secs(30);

/// A snapshot is taken so long after a run has ended, when whoever waits for the end has it, and while one goes on.
const SNAPSHOT_AFTER: Duration = Duration::from_secs(1);
const SNAPSHOT_EVERY: Duration = Duration::from_secs(300);

/// How long each step of an agent's end may take.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The same, as agents get it.
static STOP_GRACE: LazyLock<Duration> = LazyLock::new(|| hurried("STOP_GRACE", GRACE));

/// A cancelled run that has not ended by itself after this is ended with its agent.
static CANCELLED_WITHIN: LazyLock<Duration> =
    LazyLock::new(|| hurried("CANCELLED_WITHIN", Duration::from_secs(30)));

/// One worker.
pub(crate) struct Worker {
    workers: Weak<Workers>,
    session: SessionId,
    /// Whatever it logs is about its session.
    span: Span,
    seat: Arc<Seat>,
    live: Option<LiveAgent>,
    leaving: bool,
    /// The session is not there any more.
    removed: bool,
    /// When there is something to do although nothing happens.
    rest: Rest,
    /// Launches of this run that came to nothing.
    failed_launches: (Option<RunId>, u32),
    /// Launches in a row for which something ran out, and when the last one was.
    shortage: Option<(u32, Instant)>,
    /// What is to be done about the run could not be: it is tried again.
    unminded: bool,
    /// Since when the newest interruption is known here.
    interrupted: Option<(RunId, Instant)>,
    /// Since when the open run is to be cancelled.
    cancelled: Option<(RunId, Instant)>,
    /// The run whose command was told to end.
    told_to_end: Option<RunId>,
    /// How long a holder that does not answer is left alone. Short at first: one that ends hangs up a moment before it lets
    /// go of its lock.
    back_off: BackOff,
    /// It did not when it was last asked: that its lock is held tells nothing more than before.
    unanswered: bool,
    /// Whether the holder of a living agent answers.
    pulse: Pulse,
    /// Since when the agent has nothing to do.
    idleness: Idleness,
    /// Whoever waits until nothing is left of the session.
    removal_awaited: Vec<SyncSender<()>>,
    /// When the next question has waited long enough.
    deadline: Option<Timestamp>,
    /// Captures of the directory that are under way.
    captures: Captures,
    /// The prompt of a run that waits for one, with the records that it came with.
    held_prompt: Option<(UnsentPrompt, Vec<Draft>)>,
    /// When the next snapshot is due, and the last record of the newest.
    snapshot_at: Option<Instant>,
    snapshot_of: u64,
}

impl Work for Worker {
    fn work(&mut self) -> Option<Duration> {
        let workers = self.workers.upgrade()?;
        let _at_work = at_work(self.session, "work");
        let _in_session = self.span.clone().entered();
        let mut told = false;
        while let Some(command) = self.seat.inbox.pop() {
            self.rest.end();
            told = true;
            self.execute(&workers, command);
        }
        if told {
            self.supervise_run(&workers);
        }
        if self.leaving {
            self.live = None;
            workers.pool.dismiss(self.session, &self.seat, true);
            return None;
        }
        match &self.live {
            Some(_) => self.step_agent(&workers),
            None if self.rest.left().is_none_or(|left| left.is_zero()) => self.run_steps(&workers),
            None => {}
        }
        // Whoever was told something meanwhile tells the one who asked that there is nothing.
        if self.removed && workers.pool.dismiss(self.session, &self.seat, false) {
            return None;
        }
        Some(self.patience())
    }

    fn wait(&self, most: Duration) -> bool {
        self.seat.inbox.wait(self.live.as_ref().and_then(LiveAgent::as_fd), Some(most))
    }

    fn is_idle(&self) -> bool {
        self.live.is_none() && self.rest.left().is_none()
    }

    fn leave(&mut self) -> bool {
        let Some(workers) = self.workers.upgrade() else { return true };
        if !self.seat.inbox.is_empty() {
            return false;
        }
        let _in_session = self.span.clone().entered();
        self.snapshot(&workers);
        let left = workers.pool.dismiss(self.session, &self.seat, false);
        if left {
            workers.records.store.close_session(self.session);
        }
        left
    }
}

impl Worker {
    fn new(workers: &Arc<Workers>, session: SessionId, seat: &Arc<Seat>) -> Worker {
        Worker {
            workers: Arc::downgrade(workers),
            session,
            span: session_span(session),
            seat: seat.clone(),
            live: None,
            leaving: false,
            removed: false,
            rest: Rest::default(),
            failed_launches: (None, 0),
            shortage: None,
            unminded: false,
            interrupted: None,
            cancelled: None,
            told_to_end: None,
            back_off: BackOff::new(MOST_SILENCE),
            unanswered: false,
            pulse: Pulse::new(ticks::now()),
            idleness: Idleness::Busy,
            removal_awaited: Vec::new(),
            deadline: None,
            captures: Captures::default(),
            held_prompt: None,
            snapshot_at: None,
            snapshot_of: 0,
        }
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Duration {
        let now = ticks::now();
        let rest = self.rest.left();
        match &self.live {
            Some(live) => {
                let cancel =
                    self.cancelled.map(|(_, since)| (*CANCELLED_WITHIN).saturating_sub(ticks::since(since)));
                // Looked at every second: the wall may jump while we wait by another clock.
                let deadline = self.deadline.map(|_| Duration::from_secs(1));
                let snapshot = self.snapshot_at.map(|at| at.saturating_duration_since(now));
                let pulse = self.pulse.patience(now, live.is_busy());
                let checkpoint = self.captures.patience();
                let policy = self.workers.upgrade().map(|workers| workers.idle_policy);
                let idle = policy.and_then(|policy| self.idleness.patience(policy));
                [live.patience(), cancel, deadline, snapshot, rest, pulse, checkpoint, idle]
                    .into_iter()
                    .flatten()
                    .min()
                    .unwrap_or(Duration::from_secs(3600))
            }
            None => rest.unwrap_or(IDLE),
        }
    }

    fn set_presence(&self, found: AgentPresence) {
        locked(&self.seat.seen).holder = found.proof();
    }

    /// Something happens to the connection.
    fn update_connection(&self, turn: ConnectionEvent) {
        let mut seen = locked(&self.seat.seen);
        seen.link = turn.apply(seen.link);
    }

    fn set_held(&self, why: Option<String>) {
        let mut seen = locked(&self.seat.seen);
        (seen.held, seen.held_for) = (why, None);
    }

    /// Says why a session that was cut does not go on by itself; no record does.
    fn set_held_for(&self, workers: &Workers, held: Option<Held>, why: Option<String>) {
        let before = {
            let mut seen = locked(&self.seat.seen);
            seen.held = why;
            std::mem::replace(&mut seen.held_for, held)
        };
        if held != before {
            workers.watcher.changed(self.session);
        }
    }
}
