//! Rewinds: a session goes back to before a run, and another takes its place there; or only its files go back, and it goes on.

use std::path::Path;

use rekindle_domain::event::SessionFilesRestoring;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::session::SessionState;
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::request::{NewFilesRestore, NewRewind};
use rekindle_wire::view::{FilesRestoring, RewindPlan};

use super::Locks;
use super::fork::{before_run, kept_tree, latest_run};
use super::open_runs::refuse_open_runs;
use super::successor::{Origin, TRIES, check_between_runs, put_in_place};
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::show::Views;
use crate::storage::Sessions;
use crate::test_knobs::crash_point;

/// Says what a rewind would do.
pub(crate) fn plan(views: &Views, session: SessionId, new: &NewRewind) -> Result<RewindPlan> {
    let state = views.workers.records.store.open_session(session)?.state;
    plan_for(views, &state, new)
}

fn plan_for(views: &Views, state: &SessionState, new: &NewRewind) -> Result<RewindPlan> {
    check_between_runs(state)?;
    let store = &*views.workers.records.store;
    let before = before_run(store, state, run_to_undo(store, state, new.to)?)?;
    let tree = before.tree.filter(|_| new.files != Some(false));
    let working_dir = state.working_dir.clone();
    Ok(RewindPlan { run_id: before.run, seq: before.cut, tree, working_dir })
}

/// Returns the run that is meant: the latest, unless one is named.
fn run_to_undo(store: &dyn Sessions, state: &SessionState, named: Option<RunId>) -> Result<RunId> {
    let latest = match named.or_else(|| state.run.as_ref().map(|run| run.origin_run_id)) {
        // A fork in which nothing was asked yet goes back in the history that it was given.
        None if state.forked_from.is_some() => latest_run(store, state.id)?,
        run => run,
    };
    latest.ok_or_else(|| {
        ServiceError::new(Code::NothingToUndo, "the session has no prompt: there is nothing to go back to")
    })
}

/// Rewinds a session; returns the one that takes its place.
pub(crate) fn rewind(
    views: &Views,
    locks: &Locks,
    session: SessionId,
    new: &NewRewind,
    (key, by): (Option<&Key>, &str),
) -> Result<SessionId> {
    put_in_place(views, locks, session, (key, by, new.force), |state| {
        let plan = plan_for(views, state, new)?;
        Ok(Origin { cut: plan.seq, tree: plan.tree, snapshot: None })
    })
}

/// Has the files of a session put back to before a run; the session goes on as it is, and its worker does it before anything begins.
pub(crate) fn restore_files(
    views: &Views,
    session: SessionId,
    new: &NewFilesRestore,
    by: &str,
) -> Result<FilesRestoring> {
    for _ in 1..TRIES {
        match record_files(views, session, new, by) {
            Err(error) if error.code == Code::Moved => {}
            outcome => return outcome,
        }
    }
    record_files(views, session, new, by)
}

/// Records that files are to be put back in a session as it is, if nothing comes meanwhile.
fn record_files(
    views: &Views,
    session: SessionId,
    new: &NewFilesRestore,
    by: &str,
) -> Result<FilesRestoring> {
    let store = &*views.workers.records.store;
    let state = store.open_session(session)?.state;
    check_between_runs(&state)?;
    let before = before_run(store, &state, run_to_undo(store, &state, new.to)?)?;
    let tree = kept_tree(store, before.tree, || format!("no checkpoint was taken before {}", before.run))?;
    if !new.force {
        refuse_open_runs(views, Path::new(&state.working_dir))?;
    }
    let run_id = before.run;
    let record = SessionFilesRestoring { tree, run_id, by: Some(by.to_owned().into()) };
    let expect = Expect::LastSeq(state.last_seq);
    crash_point("files.before_record");
    let receipt = store.append(Append { expect, ..Append::durable(session, vec![record.into()]) })?;
    crash_point("files.after_record");
    views.workers.send(session, Command::Look)?;
    let working_dir = state.working_dir.clone();
    Ok(FilesRestoring { run_id, tree, working_dir, seq: receipt.last_seq })
}
