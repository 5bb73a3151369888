//! Stale sessions: those whose rows are behind their logs, as far as the list of sessions knows.

use std::collections::{BTreeSet, HashMap, HashSet};

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
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
        let h = state.last_hash.map(|hash| hash.to_string()).unwrap_or_default();
        known.get(state.id.as_str()).is_none_or(|cursor| (cursor.seq, &cursor.h) != (state.last_seq, &h))
    };
    let states = all.iter().map(|entry| &entry.state).filter(|state| is_behind(state));
    Ok(states.map(|state| state.id).collect())
}
