//! How a daemon ends: alone, or with all agents.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rekindle_domain::compose::cancel::is_possible;
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::SessionId;
use rekindle_domain::recovery::Found;
use rekindle_store::commit::Commits;

use crate::code::Code;
use crate::commands::cancel::cancel;
use crate::core::Core;
use crate::drive::worker::{Command, observe};
use crate::show::directory::{Directory, Entry};

/// How long agents get to end when everything is to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(15);

/// When what could not be asked for is asked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// How long workers get to leave.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// Cancels everything and ends every agent; returns how many are left after the time agents get.
pub(crate) fn stop_all(core: &Arc<Core>, by: &str) -> usize {
    // From here on nothing begins, whatever is asked for.
    core.stopping.store(true, Ordering::Relaxed);
    let all = core.directory.all(&core.store);
    let pending = |entry: &&Entry| entry.is_usable() && is_possible(&entry.state);
    let mut uncancelled: BTreeSet<SessionId> =
        all.iter().filter(pending).map(|entry| entry.state.id).collect();
    cancel_all(core, &mut uncancelled, by);
    // Those that nobody has met since we began, too; and those that are just being launched.
    let may_live = |entry: &&Entry| has_agent(entry) || !entry.is_usable();
    let living = all.iter().filter(may_live).map(|entry| entry.state.id);
    let mut untold: BTreeSet<SessionId> = living.chain(core.workers.sessions()).collect();
    tell_all(core, &mut untold, by);
    let (begin, mut tried) = (Instant::now(), Instant::now());
    loop {
        // Descriptors and room come back, also by what has ended.
        if tried.elapsed() >= AGAIN {
            cancel_all(core, &mut uncancelled, by);
            tell_all(core, &mut untold, by);
            tried = Instant::now();
        }
        let all = core.directory.all(&core.store);
        // The end of one whose log cannot be added to is in no record.
        let ended = |entry: &Entry| !entry.is_usable() && observe(core, &entry.state) != Found::Lives;
        let lives = |entry: &&Entry| has_agent(entry) && !ended(entry);
        let left = all.iter().filter(lives).count();
        if left == 0 && uncancelled.is_empty() || begin.elapsed() >= STOPPED_WITHIN {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Cancels what goes on in sessions; those where it could not be recorded just now stay in the list.
fn cancel_all(core: &Arc<Core>, sessions: &mut BTreeSet<SessionId>, by: &str) {
    sessions.retain(|session| match cancel(core, *session, CancelReason::StopAll, by) {
        Ok(_) => false,
        Err(error) if error.code == Code::NothingRunning => false,
        Err(error) => {
            tracing::warn!(%session, "cannot be cancelled: {}", error.message);
            matches!(error.code, Code::Internal | Code::Storage | Code::StorageFull | Code::OutcomeUnknown)
        }
    });
}

/// Tells sessions' workers to end their agents; those that have none and get none just now stay in the list.
fn tell_all(core: &Arc<Core>, sessions: &mut BTreeSet<SessionId>, by: &str) {
    sessions.retain(|session| {
        let stop = Command::Stop { why: "everything is to stop", by: by.to_owned() };
        core.workers.tell(core, *session, stop).is_err()
    });
}

/// Tells whether a session has an agent whose end is in no record.
fn has_agent(entry: &Entry) -> bool {
    entry.state.agent.as_ref().is_some_and(|agent| !agent.exited)
}

/// Leaves the agents to the next daemon: everything that is known is on disk, and its start will be short.
pub(crate) fn leave(core: &Core) {
    core.workers.tell_all(|| Command::Leave);
    core.access.keep_used();
    let left = core.workers.await_all(LEFT_WITHIN);
    if left > 0 {
        tracing::warn!(left, "some sessions are still busy");
    }
    let all = core.directory.all_if_surveyed(&core.store);
    for entry in all.iter().flatten() {
        // Without one the next start reads more of the log, and nothing else.
        if entry.trouble.is_none() {
            let _ = core.store.renew_snapshot(entry.state.id);
        }
    }
    if let Err(error) = core.store.committer().checkpoint() {
        tracing::warn!("no checkpoint: {error}");
    }
    if let Some(all) = all
        && let Err(error) = core.store.write_last_index(Directory::listable(&all))
    {
        tracing::warn!("the list of sessions was not written: {error}");
    }
}
