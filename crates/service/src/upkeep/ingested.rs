//! Ingested journals: whether what a dead holder's has is in its session's log, so that the journal may go.

use std::io;

use rekindle_domain::event::{Event, Kind};
use rekindle_domain::id::HolderId;
use rekindle_domain::session::SessionState;
use rekindle_store::log::LogReader;

use crate::log_search::for_each_line;

/// Tells whether a holder's journal is wholly in a log: its end is recorded, or another holder was launched after it, which
/// nobody does before. A holder that the log does not know proves nothing, whatever came later: the log may have lost
/// its end.
pub(crate) fn is_ingested(
    state: &SessionState,
    holder: HolderId,
    reader: impl FnOnce() -> io::Result<LogReader>,
) -> io::Result<bool> {
    match &state.agent {
        Some(agent) if agent.holder_id == holder => Ok(agent.exited),
        None => Ok(false),
        Some(_) => Ok(launched(&reader()?)?.contains(&holder)),
    }
}

/// Returns every holder that a log says was launched.
pub(crate) fn launched(log: &LogReader) -> io::Result<Vec<HolderId>> {
    let mut holders = Vec::new();
    for_each_line(log, |line| {
        if line.kind == Kind::AgentLaunching.as_str()
            && let Ok(Event::AgentLaunching(launching)) = line.event()
        {
            holders.push(launching.holder_id);
        }
    })?;
    Ok(holders)
}
