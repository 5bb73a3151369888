//! Restores of kept snapshots: a session goes on from one, beside the session that it is of or in its place. Who answers and with
//! which settings is as in that session now: what somebody has forbidden since stays forbidden.

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotName};
use rekindle_domain::time::Timestamp;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{ForkAt, NewFork, NewSnapshotRestore};
use rekindle_wire::view::{ForkVerdict, Forked, RestoreWarning, RestoredSession};

use super::Locks;
use super::fork::{SnapshotSource, checkpoint_behind, cut_behind, fork_from_snapshot, kept_tree, point_at};
use super::successor::{Origin, check_between_runs, put_in_place};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::show::Views;
use crate::snapshots::Snapshots;
use crate::ticks;

/// Has a session go on from a kept snapshot; returns the new one. A request that was made before finds what it made.
pub(crate) fn restore(
    (views, locks, snapshots): (&Views, &Locks, &Snapshots),
    (session, name): (SessionId, SnapshotName),
    new: &NewSnapshotRestore,
    (key, by): (Option<&Key>, &str),
) -> Result<SessionId> {
    if let Some(key) = key
        && let Some(found) = views.directory.made_by(views.store(), key)?
    {
        return Ok(found);
    }
    let begun = ticks::now();
    let restored = try_restore((views, locks, snapshots), (session, name), new, (key, by));
    match &restored {
        Ok(_) => snapshots.counts.add_restore(ticks::since(begun)),
        Err(error) if is_failure(error.code) => snapshots.counts.failed_restores.inc(),
        Err(_) => {}
    }
    restored
}

fn try_restore(
    (views, locks, snapshots): (&Views, &Locks, &Snapshots),
    (session, name): (SessionId, SnapshotName),
    new: &NewSnapshotRestore,
    (key, by): (Option<&Key>, &str),
) -> Result<SessionId> {
    let store = &*views.workers.records.store;
    let snapshot = snapshots.kept().read(session, name)?;
    if point_at(store, session, snapshot.seq)?.h != snapshot.h {
        let message = format!("snapshot {name} does not belong to the history in the session's log");
        return Err(ServiceError::new(Code::SnapshotCorrupted, message).hint(Hint::ExamineHome));
    }
    let cut = cut_behind(store, session, snapshot.seq)?;
    let tree = match (new.files, snapshot.tree) {
        (false, _) => None,
        (true, Some(tree)) => Some(tree),
        // It was taken in the middle of a run, or before the end of one was captured.
        (true, None) => checkpoint_behind(store, session, cut)?.and_then(|taken| taken.tree),
    };
    if new.files {
        kept_tree(store, tree, || format!("no checkpoint was taken together with snapshot {name}"))?;
    }
    let source = source(&snapshot, name, views.workers.records.now());
    if !new.in_place {
        let at = Some(ForkAt::Name(name.to_string()));
        let fork = NewFork { at, files: new.files, force: new.force, ..NewFork::default() };
        return fork_from_snapshot(views, locks, session, fork, key, (source, tree));
    }
    check_between_runs(&store.open_session(session)?.state)?;
    snapshots.take_before_restore(session, name);
    put_in_place(views, locks, session, (key, by, new.force), |state| {
        check_between_runs(state)?;
        Ok(Origin { cut, tree, snapshot: Some(source) })
    })
}

fn source(snapshot: &KeptSnapshot, name: SnapshotName, now: Timestamp) -> SnapshotSource {
    SnapshotSource { name, age_ms: now.millis_since(snapshot.created_at) }
}

/// Tells whether something is broken, and it is not the caller who has to do something else.
fn is_failure(code: Code) -> bool {
    let broken = [Code::SnapshotCorrupted, Code::SnapshotVersion, Code::HistoryMissing, Code::SnapExpired];
    broken.contains(&code) || code.status() >= 500
}

/// Says what came of a restore that was made.
pub(crate) fn restored(forked: Forked, in_place: bool, name: SnapshotName, of: SessionId) -> RestoredSession {
    let Forked { session, files, verdict, notice } = forked;
    let is_command = session.profile == "exec";
    // Nothing was asked yet: there is nothing that an agent could remember.
    let warnings = match verdict {
        ForkVerdict::Fresh if !is_command => Vec::new(),
        _ => vec![RestoreWarning { code: "agent_cannot_load".to_owned(), message: notice.clone() }],
    };
    let replaces = in_place.then_some(of);
    RestoredSession { session, snapshot: name.to_string(), replaces, files, verdict, notice, warnings }
}
