//! Catching up after a start: which sessions were not read to their end. The list of sessions tells that by itself; only the logs of those
//! that are behind are read, and of them only what is new.

use rekindle_domain::id::StreamId;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_notify::outbox::{Cursor, Outbox};

use super::read_session::From;

/// Returns where the log of a session is to be read from; none if it was read to its end.
pub(super) fn behind(
    outbox: &Outbox,
    as_of: Timestamp,
    first_time: bool,
    state: &SessionState,
) -> Option<From> {
    let is_read = |cursor: &Cursor| (cursor.seq, cursor.h) == (state.last_seq, state.last_hash);
    if let Some(cursor) = outbox.cursor(state.id.into()) {
        return (!is_read(cursor)).then(|| From::Behind(cursor.clone()));
    }
    // The first time it begins now; but whoever waits now is told of.
    let waits = state.open_run().and_then(|run| run.waits.iter().map(|wait| wait.since_seq).min());
    match waits.filter(|_| first_time) {
        Some(seq) => Some(From::Seq(seq)),
        None => (state.updated_at >= as_of).then_some(From::Time(as_of)),
    }
}

/// Returns the streams whose cursors say nothing any more: they are gone, or so quiet that their end is known without.
pub(super) fn forgettable<'a>(
    outbox: &'a Outbox,
    as_of: Timestamp,
    state: impl Fn(StreamId) -> Option<&'a SessionState> + 'a,
) -> impl Iterator<Item = StreamId> + 'a {
    let cursors = outbox.cursors().filter(|cursor| cursor.stream.session().is_some());
    let says_nothing = move |cursor: &&Cursor| {
        state(cursor.stream).is_none_or(|state| {
            let is_over = state.open_run().is_none() && state.recovery.interruption.is_none();
            is_over && cursor.seq == state.last_seq && state.updated_at < as_of
        })
    };
    cursors.filter(says_nothing).map(|cursor| cursor.stream)
}
