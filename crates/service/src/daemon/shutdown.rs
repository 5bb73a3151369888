//! The shutdown of a daemon: alone, or with all agents.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::compose::cancel::is_possible;
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::SessionId;
use rekindle_domain::recovery::AgentPresence;
use rekindle_store::Store;
use rekindle_store::commit::Commits;
use rekindle_wire::code::Code;

use crate::access::Access;
use crate::commands::cancel_run::cancel;
use crate::drive::worker::{Command, Workers};
use crate::error::chain;
use crate::session_span::session_span;
use crate::show::{Directory, SessionEntry, Views};
use crate::snapshots::Snapshots;

/// How long agents get to end when everything is to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(15);

/// How long captures of directories get when everything is to stop: the next daemon takes those that are missing.
const CAPTURED_WITHIN: Duration = Duration::from_secs(3);

/// When what could not be asked for is asked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// How long workers get to leave.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// Cancels everything and ends every agent; returns how many are left after the time agents get.
pub(super) fn stop_all(views: &Views, by: &str) -> usize {
    let workers = &views.workers;
    // From here on nothing begins, whatever is asked for.
    workers.begin_to_stop();
    // What goes on in a session that is not read yet is to stop, too.
    views.directory.await_all(views.store());
    let all = views.directory.all(views.store());
    let pending = |entry: &&SessionEntry| entry.is_usable() && is_possible(&entry.state);
    let mut uncancelled: BTreeSet<SessionId> =
        all.iter().filter(pending).map(|entry| entry.state.id).collect();
    cancel_all(workers, &mut uncancelled, by);
    // Those that nobody has met since we began, too; and those that are just being launched.
    let may_live = |entry: &&SessionEntry| has_agent(entry) || !entry.is_usable();
    let living = all.iter().filter(may_live).map(|entry| entry.state.id);
    let mut untold: BTreeSet<SessionId> = living.chain(workers.pool.keys()).collect();
    stop_agents(workers, &mut untold, by);
    let (begin, mut tried) = (Instant::now(), Instant::now());
    loop {
        // Descriptors and room come back, also by what has ended.
        if tried.elapsed() >= AGAIN {
            cancel_all(workers, &mut uncancelled, by);
            stop_agents(workers, &mut untold, by);
            tried = Instant::now();
        }
        let all = views.directory.all(views.store());
        // The end of one whose log cannot be added to is in no record.
        let ended = |entry: &SessionEntry| {
            !entry.is_usable() && workers.agents.observe(&entry.state) != AgentPresence::Lives
        };
        let lives = |entry: &&SessionEntry| has_agent(entry) && !ended(entry);
        let left = all.iter().filter(lives).count();
        // What runs left behind is captured while nobody else has changed it.
        let is_captured = !workers.any_capturing() || begin.elapsed() >= CAPTURED_WITHIN;
        if left == 0 && uncancelled.is_empty() && is_captured || begin.elapsed() >= STOPPED_WITHIN {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Cancels what goes on in sessions; those where it could not be recorded just now stay in the list.
fn cancel_all(workers: &Arc<Workers>, sessions: &mut BTreeSet<SessionId>, by: &str) {
    sessions.retain(|session| match cancel(workers, *session, CancelReason::StopAll, by) {
        Ok(_) => false,
        Err(error) if error.code == Code::NothingRunning => false,
        Err(error) => {
            session_span(*session).in_scope(|| tracing::warn!("cannot be cancelled: {}", error.text()));
            matches!(error.code, Code::Internal | Code::Storage | Code::StorageFull | Code::OutcomeUnknown)
        }
    });
}

/// Tells sessions' workers to end their agents; those that have none and get none just now stay in the list.
fn stop_agents(workers: &Arc<Workers>, sessions: &mut BTreeSet<SessionId>, by: &str) {
    sessions.retain(|session| {
        let stop = Command::Stop { why: "everything is being stopped", by: by.to_owned() };
        workers.send(*session, stop).is_err()
    });
}

/// Tells whether a session has an agent whose end is in no record.
fn has_agent(entry: &SessionEntry) -> bool {
    entry.state.agent.as_ref().is_some_and(|agent| !agent.exited)
}

/// Leaves the agents to the next daemon: everything that is known is on disk, and its start will be short.
pub(super) fn leave(store: &Store, views: &Views, access: &Access, snapshots: &Snapshots) {
    let workers = &views.workers;
    workers.broadcast(|| Command::Leave);
    access.keep_used();
    let left = workers.pool.await_empty(LEFT_WITHIN);
    if left > 0 {
        tracing::warn!(left, "some sessions are still busy");
    }
    // Before the caches, which then have the records of these too.
    snapshots.leave();
    let all = views.directory.is_surveyed().then(|| views.directory.all(store));
    for entry in all.iter().flatten() {
        // Without one the next start reads more of the log, and nothing else.
        if entry.trouble.is_none() {
            let _ = store.renew_snapshot(entry.state.id);
        }
    }
    if let Err(error) = store.committer().checkpoint() {
        tracing::warn!("no checkpoint: {}", chain(&error));
    }
    if let Some(all) = all
        && let Err(error) = store.write_index(Directory::listable(&all), true)
    {
        tracing::warn!("the list of sessions was not written: {}", chain(&error));
    }
}
