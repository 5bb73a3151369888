//! Forks: a session that goes on from a record of another, without a copy of what came before; and histories, read through.

use std::collections::HashSet;
use std::io;

use rekindle_domain::event::{Event, ForkedFrom};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::SnapshotName;
use rekindle_domain::session::{Position, SessionState};
use rekindle_domain::token::TokenIndex;

use super::{OpenSessionError, Store, locked};
use crate::commit::{Append, Commits, Receipts};
use crate::error::{AppendError, AtPath, PathError};
use crate::forks::Forks;
use crate::history::{self, History, MOST_LOGS};
use crate::load::{Want, load};
use crate::session_fold::SessionFold;

/// Why a fork was not made.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The append does not begin with a fork's first record.
    #[error("a fork begins with session.created, which says what it is forked from")]
    NoFork,
    /// There is a session of this id.
    #[error("session {0} already exists")]
    Exists(SessionId),
    /// The parent is being removed.
    #[error("session {0} is being removed")]
    ParentGone(SessionId),
    /// The parent has no such record.
    #[error("record {seq} of session {session} is missing or different")]
    NoSuchRecord {
        /// The parent.
        session: SessionId,
        /// The record.
        seq: u64,
    },
    /// The parent cannot be loaded.
    #[error(transparent)]
    Parent(#[from] OpenSessionError),
    /// A file cannot be read, or a base file not be written.
    #[error(transparent)]
    File(#[from] PathError),
    /// It cannot be recorded.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl<C: Commits> Store<C> {
    /// Opens the history of a session: its log, and before it what it was forked from.
    pub fn history(&self, session: SessionId) -> io::Result<History> {
        history::open(&self.home, session)
    }

    /// Returns the point at which a session can be forked behind a record of its history; none if it has no such record.
    pub fn fork_point(&self, session: SessionId, seq: u64) -> io::Result<Option<ForkedFrom>> {
        history::fork_point(&self.home, session, seq)
    }

    /// Makes a fork with its first records, and whatever is recorded elsewhere with them: all or nothing, and on disk when it is
    /// answered. Nothing of the parent is copied, and nothing of it read but the record that is named: everything before that is
    /// in the write-ahead log or on disk by then, because what is handed over later is never durable earlier.
    pub fn fork(&self, append: Append) -> Result<Receipts, ForkError> {
        let from = match append.records.first().map(|draft| &draft.event) {
            Some(Event::SessionCreated(created)) => created.forked_from.as_deref().copied(),
            _ => None,
        };
        let (Some(from), Some(session)) = (from, append.stream.session()) else {
            return Err(ForkError::NoFork);
        };
        // Whoever removes the parent finds this fork, or has removed it before we look.
        let mut forks = locked(&self.forks);
        // Nothing is added to the parent here, so its log need not be read from its beginning.
        let deleted = match self.current(from.session_id) {
            Some(current) => current.state.deleted,
            None => {
                let loaded = load(&self.home, from.session_id, Want::Status);
                loaded.map_err(OpenSessionError::from)?.state.deleted
            }
        };
        if deleted {
            return Err(ForkError::ParentGone(from.session_id));
        }
        let (log, parent) = (self.home.log(session), self.home.log(from.session_id));
        if self.home.disk.stat(&log).is_ok() {
            return Err(ForkError::Exists(session));
        }
        let point = self.fork_point(from.session_id, from.seq).at_path("read", &parent)?;
        if point.is_none_or(|point| point.h != from.h) {
            return Err(ForkError::NoSuchRecord { session: from.session_id, seq: from.seq });
        }
        if history::depth(&self.home, from.session_id).at_path("read", &parent)? >= MOST_LOGS {
            let base = history::write_base(&self.home, &*self.home.disk, session, &from);
            base.at_path("write", &self.home.base(session))?;
        }
        let (state, mut tokens) = (SessionState::forked(session, &from), TokenIndex::empty(session));
        tokens.set_position(Position::forked(&from));
        self.committer.register(SessionFold::new(state, tokens), None);
        let made = self.append_together(append);
        if made.is_err() {
            self.committer.release(session.into());
        }
        // Of one whose outcome is not known the next start may find that it was made.
        if let (Some(known), Ok(_) | Err(AppendError::OutcomeUnknown(_))) = (&mut *forks, &made) {
            known.add(session, from);
        }
        Ok(made?)
    }

    /// Returns the kept snapshots of a session that its forks name.
    pub fn forked_snapshots(&self, session: SessionId) -> io::Result<HashSet<SnapshotName>> {
        self.with_forks(|forks| Ok(forks.snapshots(session)))
    }

    /// Gives each fork of a session that has none a base file, before the session's log goes.
    pub(super) fn keep_history_for_forks(&self, session: SessionId) -> io::Result<()> {
        self.with_forks(|forks| {
            forks.write_bases(&self.home, &*self.home.disk, session)?;
            forks.forget(session);
            Ok(())
        })
    }

    /// Does something with the forks of all sessions, which are looked for when somebody first asks.
    fn with_forks<T>(&self, work: impl FnOnce(&mut Forks) -> io::Result<T>) -> io::Result<T> {
        let mut forks = locked(&self.forks);
        let known = match forks.take() {
            Some(known) => known,
            None => Forks::read(&self.home)?,
        };
        work(forks.insert(known))
    }
}
