//! A session's log as callers see it: its lines, and pages of them.

use std::sync::Arc;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{Line, peek_seq};
use rekindle_store::log::Cursor;
pub use rekindle_store::log::Damage;
use rekindle_store::{History, LoadError, OpenSessionError};
use rekindle_wire::view::HistoryMissing;

use super::directory::SessionEntry;
use crate::error::{Result, ServiceError};
use crate::storage::Sessions;

/// A record as it stands in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its number.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// Its hash, unless it is of an older version.
    pub hash: Option<ChainHash>,
    /// The whole line, without its newline: a JSON object.
    pub line: String,
}

/// A page of a log.
#[derive(Debug)]
pub struct LogPage {
    /// The records.
    pub records: Vec<LogLine>,
    /// Behind which record the next page begins.
    pub next: Option<u64>,
    /// Where the log is damaged, if this page ends there.
    pub damage: Option<Arc<Damage>>,
    /// Why what a fork goes on from cannot be read, if this page would have had some of it.
    pub history_missing: Option<HistoryMissing>,
}

/// Reads records, up to where the log is damaged.
pub(crate) fn page(store: &dyn Sessions, entry: &SessionEntry, after: u64, limit: usize) -> Result<LogPage> {
    let history = history(store, entry.state.id)?;
    let reader = &history.reader;
    let whole = entry.damage.as_ref().map(|damage| history.place(damage.begin()));
    let begins = entry.state.forked_from.map_or(1, |from| from.seq + 1);
    let missing = history.missing.as_ref().filter(|_| after.saturating_add(1) < begins);
    let history_missing = missing.map(|why| HistoryMissing { before: begins, detail: why.clone() });
    // A log of an earlier layout may begin with any number.
    let first = reader
        .forward(Cursor::START)
        .next()
        .map_err(ServiceError::internal)?
        .and_then(|line| peek_seq(line.bytes));
    let begin = match first {
        Some(first) if first > after => Some(Cursor::START),
        _ => reader.find(after.saturating_add(1)).map_err(ServiceError::internal)?,
    };
    let Some(begin) = begin else {
        let damage = entry.damage.clone();
        return Ok(LogPage { records: Vec::new(), next: None, damage, history_missing });
    };
    let mut lines = reader.forward(begin);
    let mut records: Vec<LogLine> = Vec::new();
    while records.len() <= limit {
        let Some(raw) = lines
            .next()
            .map_err(ServiceError::internal)?
            .filter(|raw| whole.is_none_or(|whole| raw.start < whole))
        else {
            break;
        };
        match log_line(raw.bytes) {
            Some(line) => records.push(line),
            // What is damaged in the log that a fork goes on from does not keep it from being told.
            None if raw.start < history.own() => {}
            // What cannot be read is not told; doctor says what it is.
            None => break,
        }
    }
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().map(|last| last.seq).filter(|_| more);
    let damage = entry.damage.clone().filter(|_| next.is_none());
    Ok(LogPage { records, next, damage, history_missing })
}

/// Opens the history of a session.
pub(crate) fn history(store: &dyn Sessions, session: SessionId) -> Result<History> {
    store.history(session).map_err(|error| match error.downcast::<LoadError>() {
        Ok(refused) => OpenSessionError::from(refused).into(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ServiceError::no_session(session),
        Err(error) => ServiceError::internal(error),
    })
}

/// Reads a line of a log as it is told.
pub(crate) fn log_line(bytes: &[u8]) -> Option<LogLine> {
    let line = Line::parse(bytes).ok()?;
    let (seq, kind, hash) = (line.seq, line.kind.to_owned(), line.hash);
    Some(LogLine { seq, kind, hash, line: String::from_utf8(bytes.to_vec()).ok()? })
}
