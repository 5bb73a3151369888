//! Recovery: at the start and now and then, sessions in which something is to be done get someone who does it. What is to
//! be done is decided in the domain, and done by workers. On the way what dead holders have left is removed, and the list is
//! written that makes the next start short.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rekindle_domain::id::{HolderId, SessionId};
use rekindle_domain::recovery::{Circumstances, Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{LockState, inspect_all, remove_leftovers};

use crate::core::Core;
use crate::drive::agents::lacks_environment;
use crate::drive::worker::{Command, has_directory, is_expired, observe};
use crate::show::directory::{Directory, Entry};
use crate::test_knobs::crash_point;
use crate::test_knobs::hurried;

/// From one sweep to the next.
const EVERY: Duration = Duration::from_secs(60);

/// Sweeps between two lists: one is as large as all that is known.
const LISTED_EVERY: u32 = 5;

/// Bytes of old logs that are read between two sweeps, to find what has rotted: hardly anything for a disk, and a day is
/// enough for a hundred gigabytes.
const READ_AT_ONCE: u64 = 128 << 20;

/// How long to wait before sessions that cannot be listed are listed again: descriptors come back, disks too.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Lists the sessions, has each looked at in which something was going on, and from then on sweeps; returns at once.
pub(crate) fn begin(core: &Arc<Core>) {
    let core = core.clone();
    let begun = std::thread::Builder::new().name("recovery".into()).spawn(move || {
        let begin = Instant::now();
        while let Err(error) = core.directory.survey(&core.store) {
            tracing::error!("cannot list the sessions: {error}");
            core.directory.cannot_list(error.to_string());
            std::thread::sleep(LOOK_AGAIN);
        }
        core.metrics.listing.set(begin.elapsed());
        let begin = Instant::now();
        for entry in core.directory.all(&core.store) {
            if entry.is_usable() && entry.state.is_unfinished() {
                core.metrics.unfinished.up();
                let _ = core.workers.tell(&core, entry.state.id, Command::Look);
            }
        }
        core.metrics.looking.set(begin.elapsed());
        core.recovered.store(true, Ordering::Relaxed);
        let weak = Arc::downgrade(&core);
        drop(core);
        keep_sweeping(&weak);
    });
    if let Err(error) = begun {
        tracing::error!("cannot begin to recover: {error}");
    }
}

/// Sweeps until the daemon is gone.
fn keep_sweeping(weak: &Weak<Core>) {
    let every = hurried("SWEEP_EVERY", EVERY);
    let (mut sweeps, mut listed) = (0, 0);
    let mut swept: Option<Instant> = None;
    while let Some(core) = weak.upgrade() {
        let missed = core.workers.missed.clone();
        let left = swept.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        if !left.is_zero() {
            drop(core);
            look_after(weak, &missed.wait(left));
            continue;
        }
        swept = Some(Instant::now());
        let all = core.directory.all(&core.store);
        attend(&core, &all);
        expire(&core, &all);
        tidy(&core, &all);
        // After the first there is nothing to be gained: a list was read, or all sessions were.
        let records = all.iter().map(|entry| entry.state.last_seq).sum::<u64>();
        if sweeps % LISTED_EVERY == LISTED_EVERY - 1 && records != listed {
            crash_point("list.before");
            match core.store.write_index(Directory::listable(&all)) {
                Ok(()) => listed = records,
                Err(error) => tracing::warn!("the list of sessions was not written: {error}"),
            }
            crash_point("list.after");
        }
        // Not while everything begins.
        if sweeps > 0 {
            core.directory.examine_some(&core.store, READ_AT_ONCE);
        }
        sweeps += 1;
    }
}

/// Has sessions looked at for which no worker could be had.
fn look_after(core: &Weak<Core>, missed: &[SessionId]) {
    let Some(core) = core.upgrade() else { return };
    for session in missed {
        let _ = core.workers.tell(&core, *session, Command::Look);
    }
}

/// Has sessions looked at that nobody looks after and in which something is to be done.
fn attend(core: &Arc<Core>, all: &[Entry]) {
    for entry in all.iter().filter(|entry| entry.is_usable() && entry.state.is_unfinished()) {
        let state = &entry.state;
        if core.workers.seat(state.id).is_none() && !rests(core, state) {
            let _ = core.workers.tell(core, state.id, Command::Look);
        }
    }
}

/// Has recorded what has run out: tokens, and waits that programs opened.
fn expire(core: &Arc<Core>, all: &[Entry]) {
    for entry in all.iter().filter(|entry| entry.damage.is_none() && !entry.state.deleted) {
        if is_expired(&entry.state, &entry.tokens, core.time()) {
            let _ = core.workers.tell(core, entry.state.id, Command::Expire);
        }
    }
}

fn rests(core: &Core, state: &SessionState) -> bool {
    let about = Circumstances {
        found: observe(core, state),
        has_directory: has_directory(state),
        has_environment: lacks_environment(core, state).is_none(),
        failed_launches: 0,
        shortage: None,
        interrupted_for: Duration::MAX,
        load_in: std::time::Duration::ZERO,
    };
    matches!(next_step(state, &about), Step::Rest(_))
}

/// Has directories removed whose holder is dead and whose journal is in a log. Those of sessions that are not known here
/// are left alone: nobody can tell what is in them and nowhere else.
fn tidy(core: &Arc<Core>, all: &[Entry]) {
    let holders = &core.places.holders;
    let known: HashMap<String, SessionId> = all
        .iter()
        .filter(|entry| entry.is_usable())
        .map(|entry| (entry.state.id.to_string(), entry.state.id))
        .collect();
    let seen = remove_leftovers(holders).and_then(|_| inspect_all(holders));
    let seen = seen.unwrap_or_else(|error| {
        tracing::warn!("cannot look at the holders: {error}");
        Vec::new()
    });
    core.metrics.saw_directories(&seen);
    for one in seen.iter().filter(|one| matches!(one.lock, LockState::Free { .. } | LockState::Missing)) {
        let session = one.launch.there().and_then(|launch| known.get(&launch.session_id));
        let holder: Option<HolderId> = one.holder_id.parse().ok();
        if let (Some(session), Some(holder)) = (session, holder) {
            let _ = core.workers.tell(core, *session, Command::Tidy(holder));
        }
    }
}
