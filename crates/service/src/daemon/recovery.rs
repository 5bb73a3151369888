//! Recovery: at the start and now and then, sessions in which something is to be done get someone who does it. What is to
//! be done is decided in the domain, and done by workers. On the way what dead holders have left is removed, and the list is
//! written that makes the next start short.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rekindle_domain::id::{HolderId, SessionId};
use rekindle_domain::recovery::{Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{LockState, inspect_all, remove_leftovers};
use rekindle_store::Store;

use crate::drive::worker::{Command, Workers, is_expired};
use crate::error::chain;
use crate::lock::locked;
use crate::metrics::Metrics;
use crate::show::{Directory, SessionEntry};
use crate::test_knobs::crash_point;
use crate::test_knobs::hurried;
use crate::upkeep::GarbageCollector;

/// From one sweep to the next.
const EVERY: Duration = Duration::from_secs(60);

/// Sweeps between two lists: one is as large as all that is known.
const LISTED_EVERY: u32 = 5;

/// Bytes of old logs that are read between two sweeps, to find what has rotted: hardly anything for a disk, and a day is
/// enough for a hundred gigabytes.
const READ_AT_ONCE: u64 = 128 << 20;

/// How long to wait before sessions that cannot be listed are listed again: descriptors come back, disks too.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long workers are not begun if the sessions are listed within this: beginning some hundreds of them would make everybody wait
/// longer who asks for the list.
const HEAD_START: Duration = Duration::from_secs(1);

/// What recovery works with.
pub(super) struct Recovery {
    pub(super) store: Arc<Store>,
    pub(super) workers: Arc<Workers>,
    pub(super) directory: Arc<Directory>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) collector: Arc<GarbageCollector>,
    /// What was going on when we began has been handed to workers.
    pub(super) recovered: AtomicBool,
}

/// Lists the sessions, has each looked at in which something was going on, and from then on sweeps; returns at once.
pub(super) fn begin(recovery: &Arc<Recovery>) {
    let at = recovery.clone();
    if let Err(error) = spawn("recovery", move || run(at)) {
        tracing::error!("cannot begin to recover: {}", chain(&error));
    }
}

fn run(at: Arc<Recovery>) {
    let begin = Instant::now();
    let unfinished = Arc::new(Mutex::new(at.directory.unfinished()));
    let (handing, told) = (at.clone(), unfinished.clone());
    let handing = spawn("hand-over", move || handing.hand_over(&told));
    while let Err(error) = at.directory.survey(&*at.store) {
        tracing::error!("cannot list the sessions: {}", chain(&error));
        at.directory.set_unlisted(error.to_string());
        std::thread::sleep(LOOK_AGAIN);
    }
    let _ = at.metrics.listing.set(begin.elapsed());
    read_large(&at);
    if let Err(error) = handing {
        tracing::warn!("unfinished sessions are checked one after the other: {error}");
        at.hand_over(&unfinished);
    }
    let weak = Arc::downgrade(&at);
    drop(at);
    sweep_until_gone(&weak);
}

impl Recovery {
    /// Gives each session a worker in which something was going on, as soon as it is read.
    fn hand_over(&self, unfinished: &Mutex<Receiver<SessionId>>) {
        self.directory.await_survey(HEAD_START);
        let begin = Instant::now();
        for session in &*locked(unfinished) {
            self.metrics.unfinished.up();
            let _ = self.workers.send(session, Command::Look);
        }
        let _ = self.metrics.looking.set(begin.elapsed());
        self.recovered.store(true, Ordering::Relaxed);
    }
}

/// Reads the logs that are so long that they were left for later, on at most half of the processors; returns at once.
fn read_large(at: &Arc<Recovery>) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..at.directory.unread().min((processors / 2).max(1)) {
        let reading = at.clone();
        let begun = spawn("long-logs", move || reading.directory.read_large(&*reading.store));
        if let Err(error) = begun {
            tracing::warn!("long logs are read before anything else is swept: {error}");
            at.directory.read_large(&*at.store);
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Sweeps until the daemon is gone.
fn sweep_until_gone(weak: &Weak<Recovery>) {
    let every = hurried("SWEEP_EVERY", EVERY);
    let (mut sweeps, mut listed) = (0, 0);
    let mut swept: Option<Instant> = None;
    while let Some(at) = weak.upgrade() {
        let missed = at.workers.missed.clone();
        let left = swept.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        if !left.is_zero() {
            drop(at);
            let missed = missed.wait(left);
            // Those for which no worker could be had are looked at again.
            if let Some(at) = weak.upgrade() {
                missed.into_iter().for_each(|session| drop(at.workers.send(session, Command::Look)));
            }
            continue;
        }
        swept = Some(Instant::now());
        let all = at.directory.all(&*at.store);
        wake_unfinished(&at.workers, &all);
        expire(&at.workers, &all);
        remove_dead_holders(&at, &all);
        // After the first there is nothing to be gained: a list was read, or all sessions were.
        let records = all.iter().map(|entry| entry.state.last_seq).sum::<u64>();
        if sweeps % LISTED_EVERY == LISTED_EVERY - 1 && records != listed {
            crash_point("list.before");
            match at.store.write_index(Directory::listable(&all), false) {
                Ok(()) => listed = records,
                Err(error) => tracing::warn!("the list of sessions was not written: {}", chain(&error)),
            }
            crash_point("list.after");
        }
        // Not while everything begins.
        if sweeps > 0 {
            at.collector.collect_if_due(at.workers.records.now());
            at.directory.examine_some(&*at.store, READ_AT_ONCE);
        }
        sweeps += 1;
    }
}

/// Has sessions looked at that nobody looks after and in which something is to be done.
fn wake_unfinished(workers: &Arc<Workers>, all: &[SessionEntry]) {
    for entry in all.iter().filter(|entry| entry.needs_worker()) {
        let state = &entry.state;
        if workers.pool.get(state.id).is_none() && !is_at_rest(workers, state) {
            let _ = workers.send(state.id, Command::Look);
        }
    }
}

/// Has recorded what has run out: tokens, and waits that programs opened.
fn expire(workers: &Arc<Workers>, all: &[SessionEntry]) {
    for entry in all.iter().filter(|entry| entry.damage.is_none() && !entry.state.deleted) {
        if is_expired(&entry.state, &entry.tokens, workers.records.time()) {
            let _ = workers.send(entry.state.id, Command::Expire);
        }
    }
}

fn is_at_rest(workers: &Workers, state: &SessionState) -> bool {
    let about = workers.agents.circumstances(state, workers.agents.observe(state));
    matches!(next_step(state, &about), Step::Rest(_))
}

/// Has directories removed whose holder is dead and whose journal is in a log. Those of sessions that are not known here
/// are left alone: nobody can tell what is in them and nowhere else.
fn remove_dead_holders(at: &Recovery, all: &[SessionEntry]) {
    let holders = &at.workers.agents.places.holders;
    let known: HashMap<String, SessionId> = all
        .iter()
        .filter(|entry| entry.is_usable())
        .map(|entry| (entry.state.id.to_string(), entry.state.id))
        .collect();
    let seen = remove_leftovers(holders).and_then(|_| inspect_all(holders));
    let seen = seen.unwrap_or_else(|error| {
        tracing::warn!("cannot check the holders: {}", chain(&error));
        Vec::new()
    });
    at.metrics.count_directories(&seen);
    for one in seen.iter().filter(|one| matches!(one.lock, LockState::Free { .. } | LockState::Missing)) {
        let session = one.launch.there().and_then(|launch| known.get(&launch.session_id));
        let holder: Option<HolderId> = one.holder_id.parse().ok();
        if let (Some(session), Some(holder)) = (session, holder) {
            let _ = at.workers.send(*session, Command::Tidy(holder));
        }
    }
}
