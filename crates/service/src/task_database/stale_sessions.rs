//! Stale sessions: those whose rows are behind their logs, as far as the list of sessions knows. One in which nothing ever
//! ran has no rows, and its log is not read for them.

use std::collections::{BTreeSet, HashMap, HashSet};

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::SessionFold;
use rekindle_store::commit::Commits;
use rekindle_taskdb::{Cursor, DbError, TaskDb};

use super::Tools;

/// Returns the sessions whose rows are behind their logs; what rows say of sessions that are gone is forgotten.
pub(super) fn find_stale(tools: &Tools, db: &mut TaskDb) -> Result<BTreeSet<SessionId>, DbError> {
    let home = &tools.owner.home_id;
    let known: HashMap<String, Cursor> = db.cursors(home)?.into_iter().collect();
    let all = tools.directory.all(&*tools.store);
    let there: HashSet<&str> = all.iter().map(|entry| entry.state.id.as_str()).collect();
    let gone = known.keys().filter(|stream| !there.contains(stream.as_str()));
    for session in gone.filter_map(|stream| stream.parse::<SessionId>().ok()) {
        db.forget_session(home, session)?;
    }
    let is_behind = |state: &SessionState| {
        let Some(cursor) = known.get(state.id.as_str()) else { return state.run.is_some() };
        let h = state.last_hash.map(|hash| hash.to_string()).unwrap_or_default();
        (cursor.seq, &cursor.h) != (state.last_seq, &h)
    };
    let states = all.iter().map(|entry| &entry.state).filter(|state| is_behind(state));
    Ok(states.map(|state| state.id).collect())
}

/// Tells whether nothing ever ran in a session, as far as can be told without its log.
pub(super) fn is_without_runs(tools: &Tools, session: SessionId) -> bool {
    let known = tools.store.committer().current::<SessionFold>(session.into());
    known.is_some_and(|session| session.fold.state.run.is_none())
}
