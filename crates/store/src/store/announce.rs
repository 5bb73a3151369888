//! Repairs of logs, told in the logs themselves: what opening the home put right, and what was cut off when a session was opened.

use std::collections::HashMap;
use std::io;

use rekindle_domain::event::{LogRepaired, Raw};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;

use super::{OpenSessionError, Store, locked};
use crate::blobs::{BlobRef, MAX_BLOB};
use crate::commit::{Append, Commits};
use crate::disk::{OpenMode, read_exact_at};
use crate::error::{AppendError, AtPath};
use crate::load::Loaded;
use crate::log::Torn;
use crate::recover::Recovered;
use crate::redo::Completion;

impl<C: Commits> Store<C> {
    /// Keeps what is about to be cut off as a blob. The beginning of one line is what a crash leaves and nobody
    /// was ever told of; more than that may have been records once, and is not ours to throw away.
    pub(super) fn save_torn_as_blob(
        &self,
        session: SessionId,
        torn: Torn,
    ) -> Result<Option<BlobRef>, OpenSessionError> {
        let path = self.home.log(session);
        let len = usize::try_from(torn.len).ok().filter(|len| *len <= MAX_BLOB);
        let Some(len) = len else { return Ok(None) };
        let mut bytes = vec![0; len];
        let log = self.home.disk.open(&path, OpenMode::Read);
        log.and_then(|log| read_exact_at(&*log, &mut bytes, torn.offset)).at_path("write", &path)?;
        if !bytes.contains(&b'\n') {
            return Ok(None);
        }
        let stored = self.blobs().put(&bytes).map_err(io::Error::other);
        Ok(Some(stored.at_path("write", &path)?))
    }

    /// Records what was cut off now and what opening the home put right, each once.
    pub(super) fn announce_repairs(
        &self,
        session: SessionId,
        loaded: &Loaded,
        kept: Option<BlobRef>,
    ) -> Result<(), AppendError> {
        if loaded.damage.is_some() || loaded.state.deleted || !loaded.state.is_created() {
            return Ok(());
        }
        let cut = loaded.torn.map(|torn| LogRepaired {
            what: if torn.half_list { "half_list" } else { "torn_tail" }.into(),
            offset: torn.offset,
            cut_bytes: torn.len,
            refilled: 0,
            kept: kept.and_then(|kept| Raw::from_value(&kept).ok()),
        });
        if let Some(cut) = cut {
            locked(&self.unannounced).entry(session).or_default().push(cut);
        }
        match self.announce(session) {
            // Room comes back, and then it is announced; meanwhile the session can be looked at.
            Err(AppendError::StorageFull(_) | AppendError::Storage(_)) => Ok(()),
            outcome => outcome,
        }
    }

    /// Records what was put right in a session's log, once.
    fn announce(&self, session: SessionId) -> Result<(), AppendError> {
        let records = locked(&self.unannounced).get(&session).cloned().unwrap_or_default();
        if !records.is_empty() {
            let records = records.into_iter().map(Draft::from).collect();
            self.committer.append(Append::durable(session, records))?;
            locked(&self.unannounced).remove(&session);
        }
        Ok(())
    }

    /// Records what could not be recorded when the session was opened.
    pub(super) fn announce_late(&self, session: SessionId) {
        if locked(&self.unannounced).contains_key(&session) {
            let _told_once = self.loading.lock(session.into());
            // Whoever opens it next tries again.
            let _ = self.announce(session);
        }
    }
}

/// Returns what opening a home put right, as records for the sessions concerned.
pub(super) fn repairs(recovered: &Recovered) -> HashMap<SessionId, Vec<LogRepaired<'static>>> {
    let repair = |completion: &Completion| match *completion {
        Completion::Repaired { offset, cut_bytes, refilled, healed } => {
            let what = if healed { "healed" } else { "torn_tail" }.into();
            Some(LogRepaired { what, offset, cut_bytes, refilled, kept: None })
        }
        // Completing a log that was merely behind is no repair: it is what it would have been.
        Completion::Whole
        | Completion::Refilled { .. }
        | Completion::Removed
        | Completion::SetAside
        | Completion::Damaged(_) => None,
    };
    recovered.sessions().filter_map(|(id, done)| repair(done).map(|repair| (id, vec![repair]))).collect()
}
