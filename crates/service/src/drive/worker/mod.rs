//! One worker for each session that has something to do, on a thread of its own: everything that changes the session's
//! course passes through it, one thing after the other. It asks what is to be done, does it, and asks again, so that
//! recovery after a crash is nothing else than going on.

mod adopt;
mod begin;
mod commands;
mod damaged;
mod external_wait;
mod heartbeat;
mod inbox;
mod observe;
mod retry;
mod spoken;
mod step;
mod supervise;

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::{Duration, Instant};

use rekindle_agent::connection::Delta;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::projector::HolderProof;
use rekindle_domain::recovery::Found;
use rekindle_domain::time::Timestamp;
use rekindle_store::meter::Gauge;

pub use observe::look_for_holder;

pub(crate) use external_wait::is_expired;
use heartbeat::Pulse;
pub(crate) use inbox::{Answering, Cancelled, Cancelling, Command, Inbox, Opening};
pub(crate) use observe::{has_directory, observe};
pub(crate) use retry::Missed;
use spoken::Spoken;
pub(crate) use spoken::last_line;

use crate::core::{Core, locked};
use crate::drive::connection_state::{Link, Turn};
use crate::drive::live::Live;
use crate::error::ServiceError;
use crate::test_knobs::hurried;

/// A worker that has nothing to do and no agent ends after this.
const IDLE: Duration = Duration::from_secs(30);

/// A snapshot is taken so long after a run has ended, when whoever waits for the end has it, and while one goes on.
const SNAPSHOT_AFTER: Duration = Duration::from_secs(1);
const SNAPSHOT_EVERY: Duration = Duration::from_secs(300);

/// How many are looked at at a time when everything begins at once.
const AT_ONCE: usize = 16;

/// How long each step of an agent's end may take.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A cancelled run that has not ended by itself after this is ended with its agent.
static CANCELLED_WITHIN: LazyLock<Duration> =
    LazyLock::new(|| hurried("CANCELLED_WITHIN", Duration::from_secs(30)));

/// All workers.
#[derive(Default)]
pub(crate) struct Workers {
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
    gate: Gate,
    /// Sessions for which no worker could be had.
    pub(crate) missed: Arc<Missed>,
}

/// What others see of a worker.
pub(crate) struct Seat {
    pub(crate) inbox: Inbox,
    seen: Mutex<Seen>,
    /// Bytes of the holder's journal that were not read when it was last looked at.
    unread: Gauge,
}

/// How a session's agent was last seen, and why nothing happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) holder: Option<HolderProof>,
    pub(crate) held: Option<String>,
    /// Where the connection stands.
    pub(crate) link: Link,
    /// When the agent last said anything, in a record or not, and what.
    pub(crate) heard_at: Option<Timestamp>,
    pub(crate) spoken: Spoken,
}

impl Seat {
    /// The agent has said something.
    pub(crate) fn hear(&self, now: Timestamp, delta: &Delta) {
        let mut seen = locked(&self.seen);
        // What was said while nobody was there was not said just now. A time to come is none.
        seen.heard_at = Some(delta.said_at.map_or(now, |said_at| said_at.min(now)));
        seen.spoken.note(delta);
    }

    pub(crate) fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }
}

/// Lets a few through at a time.
#[derive(Default)]
struct Gate {
    inside: Mutex<usize>,
    freed: std::sync::Condvar,
}

impl Gate {
    fn enter(&self) -> Pass<'_> {
        let inside = locked(&self.inside);
        let full = |inside: &mut usize| *inside >= AT_ONCE;
        let mut inside =
            self.freed.wait_while(inside, full).unwrap_or_else(std::sync::PoisonError::into_inner);
        *inside += 1;
        Pass(self)
    }
}

struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *locked(&self.0.inside) -= 1;
        self.0.freed.notify_one();
    }
}

impl Workers {
    /// Gives a session's worker something to do, hiring one if there is none. If none can be had just now, what the log says
    /// is done as soon as one can; only what somebody waits for is an error.
    pub(crate) fn tell(
        &self,
        core: &Arc<Core>,
        session: SessionId,
        command: Command,
    ) -> Result<(), ServiceError> {
        let follows_from_log =
            matches!(command, Command::Look | Command::Retell | Command::Prompt(..) | Command::Tidy(_));
        let told = self.hire(core, session, command);
        match &told {
            Err(error) if follows_from_log => {
                tracing::warn!(%session, "nobody looks after it yet: {}", error.message);
                let why = format!("the daemon cannot look after it yet: {}", error.message);
                self.missed.add(session, why);
                return Ok(());
            }
            Err(_) => {}
            Ok(()) => self.missed.remove(session),
        }
        told
    }

    fn hire(&self, core: &Arc<Core>, session: SessionId, command: Command) -> Result<(), ServiceError> {
        let mut seats = locked(&self.seats);
        if let Some(seat) = seats.get(&session) {
            seat.inbox.push(command);
            return Ok(());
        }
        let failed = |error: std::io::Error| ServiceError::internal(&error);
        let inbox = Inbox::new().map_err(failed)?;
        inbox.push(command);
        let seat = Arc::new(Seat { inbox, seen: Mutex::default(), unread: Gauge::default() });
        let worker = Worker::new(core, session, &seat);
        let thread = std::thread::Builder::new().name(format!("s-{}", short(session))).stack_size(1 << 20);
        thread.spawn(move || worker.run()).map_err(failed)?;
        seats.insert(session, seat);
        Ok(())
    }

    /// Returns how many workers there are, and how many bytes of journals they have not read yet.
    pub(crate) fn load(&self) -> (usize, u64) {
        let seats = locked(&self.seats);
        (seats.len(), seats.values().map(|seat| seat.unread.get()).sum())
    }

    /// Returns a session's worker, if it has one.
    pub(crate) fn seat(&self, session: SessionId) -> Option<Arc<Seat>> {
        locked(&self.seats).get(&session).cloned()
    }

    /// Tells a session's worker, if it has one.
    pub(crate) fn mention(&self, session: SessionId, command: Command) {
        if let Some(seat) = self.seat(session) {
            seat.inbox.push(command);
        }
    }

    /// Returns the sessions that have a worker.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        locked(&self.seats).keys().copied().collect()
    }

    /// Tells all workers.
    pub(crate) fn tell_all(&self, command: impl Fn() -> Command) {
        locked(&self.seats).values().for_each(|seat| seat.inbox.push(command()));
    }

    /// Waits until all workers have left, but not for ever; returns how many have not.
    pub(crate) fn await_all(&self, most: Duration) -> usize {
        let begin = Instant::now();
        loop {
            let left = locked(&self.seats).len();
            if left == 0 || begin.elapsed() >= most {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets go of a worker that has nothing to do, unless it was just told something.
    fn dismiss(&self, session: SessionId, seat: &Seat, leaving: bool) -> bool {
        let mut seats = locked(&self.seats);
        let may = leaving || seat.inbox.is_empty();
        if may {
            seats.remove(&session);
        }
        may
    }
}

fn short(session: SessionId) -> String {
    let text = session.to_string();
    text.chars().skip(text.len().saturating_sub(12)).collect()
}

/// One worker.
pub(super) struct Worker {
    core: Weak<Core>,
    session: SessionId,
    seat: Arc<Seat>,
    live: Option<Live>,
    leaving: bool,
    /// The session is not there any more.
    removed: bool,
    /// Until when nothing is to be done unless something happens.
    rest_until: Option<Instant>,
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
    /// How often in a row the holder did not answer.
    silent: u32,
    /// It did not when it was last asked: that its lock is held tells nothing more than before.
    unanswered: bool,
    /// Whether the holder of a living agent answers.
    pulse: Pulse,
    /// Whoever waits until nothing is left of the session.
    removal_awaited: Vec<SyncSender<()>>,
    /// When the next question has waited long enough.
    deadline: Option<Timestamp>,
    /// When the next snapshot is due, and the last record of the newest.
    snapshot_at: Option<Instant>,
    snapshot_of: u64,
}

impl Worker {
    fn new(core: &Arc<Core>, session: SessionId, seat: &Arc<Seat>) -> Worker {
        Worker {
            core: Arc::downgrade(core),
            session,
            seat: seat.clone(),
            live: None,
            leaving: false,
            removed: false,
            rest_until: None,
            failed_launches: (None, 0),
            shortage: None,
            unminded: false,
            interrupted: None,
            cancelled: None,
            told_to_end: None,
            silent: 0,
            unanswered: false,
            pulse: Pulse::new(Instant::now()),
            removal_awaited: Vec::new(),
            deadline: None,
            snapshot_at: None,
            snapshot_of: 0,
        }
    }

    fn run(mut self) {
        loop {
            let Some(core) = self.core.upgrade() else { return };
            let mut told = false;
            while let Some(command) = self.seat.inbox.pop() {
                (self.rest_until, told) = (None, true);
                self.obey(&core, command);
            }
            if told {
                self.mind(&core);
            }
            if self.leaving {
                self.live = None;
                core.workers.dismiss(self.session, &self.seat, true);
                return;
            }
            match &self.live {
                Some(_) => self.live_step(&core),
                None if self.rest_until.is_none_or(|until| Instant::now() >= until) => self.next(&core),
                None => {}
            }
            // Whoever was told something meanwhile tells the one who asked that there is nothing.
            if self.removed && core.workers.dismiss(self.session, &self.seat, false) {
                return;
            }
            let most = self.patience();
            drop(core);
            if most.is_zero() {
                continue;
            }
            let fd = self.live.as_ref().and_then(Live::as_fd);
            let idle = self.live.is_none() && self.rest_until.is_none();
            let in_vain = self.seat.inbox.wait(fd, Some(most));
            if idle && in_vain && self.seat.inbox.is_empty() {
                let Some(core) = self.core.upgrade() else { return };
                self.snapshot(&core);
                if core.workers.dismiss(self.session, &self.seat, false) {
                    core.store.close_session(self.session);
                    return;
                }
            }
        }
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Duration {
        let now = Instant::now();
        let rest = self.rest_until.map(|until| until.saturating_duration_since(now));
        match &self.live {
            Some(live) => {
                let cancel =
                    self.cancelled.map(|(_, since)| (*CANCELLED_WITHIN).saturating_sub(since.elapsed()));
                // Looked at every second: the wall may jump while we wait by another clock.
                let deadline = self.deadline.map(|_| Duration::from_secs(1));
                let snapshot = self.snapshot_at.map(|at| at.saturating_duration_since(now));
                let pulse = self.pulse.patience(now, live.is_busy());
                [live.patience(), cancel, deadline, snapshot, rest, pulse]
                    .into_iter()
                    .flatten()
                    .min()
                    .unwrap_or(Duration::from_secs(3600))
            }
            None => rest.unwrap_or(IDLE),
        }
    }

    /// Rests until something happens, or for a while.
    fn rest(&mut self, most: Option<Duration>) {
        self.rest_until = most.map(|most| Instant::now() + most);
    }

    fn see(&self, found: Found) {
        locked(&self.seat.seen).holder = found.proof();
    }

    /// Something happens to the connection.
    fn turn(&self, turn: Turn) {
        let mut seen = locked(&self.seat.seen);
        seen.link = seen.link.after(turn);
    }

    fn hold(&self, why: Option<String>) {
        locked(&self.seat.seen).held = why;
    }
}
