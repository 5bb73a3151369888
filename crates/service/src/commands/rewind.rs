//! Rewinds: a session goes back to before a run. What is recorded is a fork that takes its place, and its own close, in one append;
//! then the fork's files are made what they were before that run, and only then anything begins in it.

use std::path::Path;

use rekindle_domain::event::{Event, Restoring, SessionClosed};
use rekindle_domain::fork::{Wishes, fork as compose_fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::{Append, Expect, Part};
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::NewRewind;
use rekindle_wire::view::RewindPlan;

use super::Locks;
use super::fork::{before_run, still_running};
use super::keyed_session::lock_name;
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::show::{SessionEntry, Views};
use crate::storage::Sessions;
use crate::test_knobs::crash_point;

/// Tries of an append that something else came before: the checkpoint of the latest run's end, for example.
const TRIES: usize = 16;

/// Says what a rewind would do.
pub(crate) fn plan(views: &Views, session: SessionId, new: &NewRewind) -> Result<RewindPlan> {
    let state = views.workers.records.store.open_session(session)?.state;
    plan_for(views, &state, new)
}

fn plan_for(views: &Views, state: &SessionState, new: &NewRewind) -> Result<RewindPlan> {
    if state.deleted {
        return Err(ServiceError::no_session(state.id));
    }
    if state.closed {
        let message = "the session is closed: what took its place may be rewound";
        return Err(ServiceError::new(Code::SessionClosed, message).hint(Hint::ListSessions));
    }
    if let Some(open) = state.open_run() {
        return Err(still_running(open.run_id));
    }
    let latest = state.run.as_ref().map(|run| run.origin_run_id);
    let run = new.to.or(latest).ok_or_else(|| {
        ServiceError::new(
            Code::RunUnknown,
            "nothing was asked in the session: there is nothing to go back to",
        )
    })?;
    let before = before_run(&*views.workers.records.store, state, run)?;
    let tree = before.tree.filter(|_| new.files != Some(false));
    let working_dir = state.working_dir.clone();
    Ok(RewindPlan { run_id: before.run, seq: before.cut, tree, working_dir })
}

/// Rewinds a session; returns the one that takes its place.
pub(crate) fn rewind(
    views: &Views,
    locks: &Locks,
    session: SessionId,
    new: &NewRewind,
    (key, by): (Option<&Key>, &str),
) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    // Its lasting name goes on to what takes its place: whoever asks for a session of that name meanwhile waits.
    let name = workers.records.store.open_session(session)?.state.key.as_deref().map(lock_name);
    let _named = name.as_ref().map(|name| locks.keyed.lock(name));
    let _one_at_a_time = key.map(|key| locks.keyed.lock(&key.key));
    if let Some(key) = key
        && let Some(found) = directory.made_by(views.store(), key)?
    {
        return Ok(found);
    }
    let successor = SessionId::mint(millis(workers.records.now()), random()?);
    for _ in 1..TRIES {
        match record(views, session, successor, new, (key, by)) {
            Err(error) if error.code == Code::Moved => {}
            outcome => return outcome,
        }
    }
    record(views, session, successor, new, (key, by))
}

/// Records a rewind of a session as it is, if nothing comes meanwhile.
fn record(
    views: &Views,
    session: SessionId,
    successor: SessionId,
    new: &NewRewind,
    (key, by): (Option<&Key>, &str),
) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    let store = &*workers.records.store;
    let state = store.open_session(session)?.state;
    let plan = plan_for(views, &state, new)?;
    if plan.tree.is_some() && !new.force {
        refuse_open_runs(views, &state)?;
    }
    let Some(point) = store.fork_point(session, plan.seq).map_err(ServiceError::internal)? else {
        let message = format!("record {} of the session's history cannot be read", plan.seq);
        return Err(ServiceError::new(Code::HistoryMissing, message));
    };
    let wishes = Wishes {
        idempotency_key: key.map(Key::as_stored),
        key: state.key.clone(),
        restoring: plan.tree.map(|tree| Restoring { tree }),
        ..Wishes::default()
    };
    let created = compose_fork(&state, point, wishes);
    let closed = SessionClosed { by: Some(by.to_owned().into()) };
    // Nothing may have come since the plan was made: it would be lost in a session that nobody looks at any more.
    let part = Part {
        stream: session.into(),
        records: vec![closed.into()],
        expect: Expect::LastSeq(state.last_seq),
    };
    let append = Append { more: vec![part], ..Append::durable(successor, vec![created.into()]) };
    crash_point("rewind.before_record");
    store.fork(append)?;
    crash_point("rewind.after_record");
    workers.agents.environment.share(session, successor);
    if let Some(key) = key {
        directory.add_key(&key.as_stored(), successor);
    }
    workers.send(session, Command::Stop { why: "the session was rewound", by: by.to_owned() })?;
    if plan.tree.is_some() {
        workers.send(successor, Command::Look)?;
    }
    Ok(successor)
}

/// Tells whether files are restored in a session that is a rewind, or were: its first record says so.
pub(crate) fn has_files(store: &dyn Sessions, session: SessionId) -> Result<bool> {
    let reader = store.reader(session).map_err(ServiceError::internal)?;
    let mut lines = reader.forward(Cursor::START);
    let first = lines.next().map_err(ServiceError::internal)?;
    let event = first.and_then(|raw| {
        Line::parse(raw.bytes).ok()?.event().ok().map(|event| match event {
            Event::SessionCreated(created) => created.restoring.is_some(),
            _ => false,
        })
    });
    Ok(event.unwrap_or(false))
}

/// Refuses to restore a directory in which another session's run goes on, or above or below which one does.
fn refuse_open_runs(views: &Views, state: &SessionState) -> Result<()> {
    let root = Path::new(&state.working_dir);
    let overlaps = |entry: &SessionEntry| {
        let at = Path::new(&entry.state.working_dir);
        entry.state.open_run().is_some() && (at.starts_with(root) || root.starts_with(at))
    };
    let busy = views.directory.find_all(views.store(), overlaps);
    match busy.first() {
        None => Ok(()),
        Some(entry) => {
            let (id, place) = (entry.state.id, root.display());
            let message = format!("the run of session {id} has not ended, in, above or below {place}");
            Err(ServiceError::new(Code::StillRunning, message).hint(Hint::CancelOrForce))
        }
    }
}
