//! Successors: a session that takes the place of another, which is closed in the same append. If it has files to be restored, its
//! worker does that before anything begins in it.

use std::path::Path;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Restoring, SessionClosed};
use rekindle_domain::fork::{Wishes, fork as compose_fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::{Append, Expect, Part};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::Locks;
use super::fork::{SnapshotSource, point_at, still_running};
use super::keyed_session::lock_name;
use super::open_runs::refuse_open_runs;
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::show::Views;
use crate::test_knobs::crash_point;

/// Tries of an append that something else came before: the checkpoint of the latest run's end, for example.
pub(super) const TRIES: usize = 16;

/// What a successor goes on from.
pub(super) struct Origin {
    /// The record behind which the history is cut.
    pub(super) cut: u64,
    /// What its files are made, if they are.
    pub(super) tree: Option<BlobId>,
    /// The snapshot that was named for it.
    pub(super) snapshot: Option<SnapshotSource>,
}

/// Refuses a session that cannot be taken back: one that is gone, was taken back before, or in which something goes on.
pub(super) fn check_between_runs(state: &SessionState) -> Result<()> {
    if state.deleted {
        return Err(ServiceError::no_session(state.id));
    }
    if state.closed {
        let message = "the session is closed: rewind the session that replaced it";
        return Err(ServiceError::new(Code::SessionClosed, message).hint(Hint::ListSessions));
    }
    if let Some(removed) = state.worktree.as_ref().filter(|worktree| worktree.removed) {
        let message = format!("its worktree was removed: {}", removed.wanted.directory);
        return Err(ServiceError::new(Code::WorktreeMissing, message).hint(Hint::ForkElsewhere));
    }
    state.open_run().map_or(Ok(()), |open| Err(still_running(open.run_id)))
}

/// Puts another session into the place of one; a request that was made before finds what it made.
pub(super) fn put_in_place(
    views: &Views,
    locks: &Locks,
    session: SessionId,
    (key, by, force): (Option<&Key>, &str, bool),
    origin: impl Fn(&SessionState) -> Result<Origin>,
) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    // Its lasting name goes on to what takes its place: whoever asks for a session of that name meanwhile waits.
    let state = workers.records.store.open_session(session)?.state;
    let name = state.key.as_deref().map(lock_name);
    let _named = name.as_ref().map(|name| locks.keyed.lock(name));
    // So does its worktree: whoever merges or removes that is done with it first.
    let _settled = state.worktree.as_ref().map(|worktree| locks.worktrees.lock(&worktree.wanted.directory));
    let _one_at_a_time = key.map(|key| locks.keyed.lock(&key.key));
    if let Some(key) = key
        && let Some(found) = directory.made_by(views.store(), key)?
    {
        return Ok(found);
    }
    let successor = SessionId::mint(millis(workers.records.now()), random()?);
    let record = || record(views, (session, successor), (key, by, force), &origin);
    for _ in 1..TRIES {
        match record() {
            Err(error) if error.code == Code::Moved => {}
            outcome => return outcome,
        }
    }
    record()
}

/// Records a successor of a session as it is, if nothing comes meanwhile.
fn record(
    views: &Views,
    (session, successor): (SessionId, SessionId),
    (key, by, force): (Option<&Key>, &str, bool),
    origin: impl Fn(&SessionState) -> Result<Origin>,
) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    let store = &*workers.records.store;
    let state = store.open_session(session)?.state;
    let Origin { cut, tree, snapshot } = origin(&state)?;
    if tree.is_some() && !force {
        refuse_open_runs(views, Path::new(&state.working_dir))?;
    }
    let wishes = Wishes {
        idempotency_key: key.map(Key::as_stored),
        key: state.key.clone(),
        restoring: tree.map(Restoring::new),
        snapshot: snapshot.map(|source| source.name),
        takes_place: true,
        ..Wishes::default()
    };
    let created = Draft::from(compose_fork(&state, point_at(store, session, cut)?, wishes));
    let records = [created].into_iter().chain(snapshot.map(|source| source.record().into())).collect();
    let closed = SessionClosed { by: Some(by.to_owned().into()), replaced_by: Some(successor) };
    // Nothing may have come since the plan was made: it would be lost in a session that nobody looks at any more.
    let part = Part {
        stream: session.into(),
        records: vec![closed.into()],
        expect: Expect::LastSeq(state.last_seq),
    };
    let append = Append { more: vec![part], ..Append::durable(successor, records) };
    crash_point("rewind.before_record");
    store.fork(append)?;
    crash_point("rewind.after_record");
    workers.agents.environment.share(session, successor);
    if let Some(key) = key {
        directory.add_key(&key.as_stored(), successor);
    }
    workers.send(session, Command::Stop { why: "the session was rewound", by: by.to_owned() })?;
    if tree.is_some() {
        workers.send(successor, Command::Look)?;
    }
    Ok(successor)
}
