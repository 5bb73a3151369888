//! Sessions that came to be elsewhere: their logs are made whole, with the times that their records have, or not at all.

use rekindle_domain::chain::Link;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{Draft, Envelope};
use rekindle_domain::session::{Position, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;

use super::{OpenSessionError, Store};
use crate::commit::{Commits, MAX_RECORD};
use crate::disk::{if_exists, replace};
use crate::error::{AppendError, AtPath};
use crate::fold::{Fold, Record};
use crate::session_fold::SessionFold;

impl<C: Commits> Store<C> {
    /// Makes the log of a session from records with times of their own; tells whether there was none of that id. What could not
    /// follow what came before it is refused, and then there is no log.
    ///
    /// The write-ahead log must not mention the session: a deletion in it would take the new log for the old one. A checkpoint
    /// before the first import sees to that.
    pub fn import_session(
        &self,
        session: SessionId,
        records: &[(Timestamp, Draft)],
    ) -> Result<bool, OpenSessionError> {
        let path = self.home.log(session);
        let _one_at_a_time = self.loading.lock(session.into());
        let known = if_exists(self.home.disk.stat(&path)).at_path("look at", &path)?.is_some();
        if known || self.current(session).is_some() {
            return Ok(false);
        }
        let lines = self.encode(session, records)?;
        replace(&*self.home.disk, &path, &lines).at_path("write", &path)?;
        Ok(true)
    }

    /// Returns the lines of a log.
    fn encode(&self, session: SessionId, records: &[(Timestamp, Draft)]) -> Result<Vec<u8>, AppendError> {
        let mut fold = SessionFold::new(SessionState::empty(session), TokenIndex::empty(session));
        let mut lines = Vec::new();
        for (ts, draft) in records {
            let (position, start) = (fold.position(), lines.len());
            let (seq, text) = (position.last_seq + 1, ts.to_string());
            let place = Envelope { seq, ts: &text, at: None, more: false };
            let link = Link::new(session, position.last_hash);
            let written = self.home.codec().write(draft, place, link, &mut lines);
            let hash = written.map_err(|error| AppendError::Unwritable(error.to_string()))?;
            let size = lines.len() - start;
            if size > MAX_RECORD {
                return Err(AppendError::TooLarge { size, limit: MAX_RECORD });
            }
            fold.apply(&Record { seq, ts: *ts, at: None, source: None, event: &draft.event })?;
            let log_offset = lines.len() as u64;
            fold.set_position(Position { last_seq: seq, log_offset, last_hash: Some(hash) });
        }
        Ok(lines)
    }
}
