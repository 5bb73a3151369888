//! Kept snapshots of a home that is open: taken of sessions as they are in memory, each on disk before the record that tells of it,
//! and none of a session that is gone.

use std::io;
use std::time::Instant;

use rekindle_domain::event::{Compression, SnapshotCreated};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotName};

use super::Store;
use crate::commit::{Append, Commits};
use crate::error::{AppendError, PathError};
use crate::kept_snapshots::{Kept, KeptSnapshots, SnapshotError};
use crate::threads::map_on_threads;

/// Why a snapshot was not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The session is being removed, or its log is damaged: there is nothing that a snapshot could stand for.
    #[error("{0} is being removed, or its log is damaged")]
    Unusable(SessionId),
    /// Its file could not be written.
    #[error(transparent)]
    Write(#[from] SnapshotError),
    /// What it tells of could not be made durable before it, or the record that tells of it could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl KeepError {
    /// Returns the disk's own error, if it was the disk's.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            KeepError::Write(SnapshotError::Io(PathError { source, .. })) => Some(source),
            KeepError::Append(AppendError::StorageFull(error) | AppendError::Storage(error)) => Some(error),
            _ => None,
        }
    }
}

impl<C: Commits> Store<C> {
    /// Returns the kept snapshots of the home, to be looked at.
    pub fn kept_snapshots(&self) -> KeptSnapshots {
        KeptSnapshots::new(self.home.disk.clone(), self.home.layout.clone())
    }

    /// Keeps some snapshots, several at a time where the disk likes that. Everything they tell of is made durable first, once for
    /// all of them: after a power cut no log is shorter than its snapshots. Each is recorded in its session's log when it is on
    /// disk; if we die in between, it is there all the same.
    pub fn keep_snapshots(&self, snapshots: &[(KeptSnapshot, Compression)]) -> Vec<Result<Kept, KeepError>> {
        if let Err(error) = self.committer().sync() {
            return snapshots.iter().map(|_| Err(error.clone().into())).collect();
        }
        let at_once = self.home.disk.parallel_syncs();
        map_on_threads(at_once, snapshots, |(snapshot, compression)| self.keep_one(snapshot, *compression))
    }

    fn keep_one(&self, snapshot: &KeptSnapshot, compression: Compression) -> Result<Kept, KeepError> {
        let begun = Instant::now();
        let session = snapshot.session_id;
        let _not_removed_meanwhile = self.keeping.lock(session.into());
        let current = self.current(session).filter(|now| !now.state.deleted && now.damage.is_none());
        if current.is_none() {
            return Err(KeepError::Unusable(session));
        }
        let file = self.kept_snapshots().write(snapshot, compression)?;
        let record = SnapshotCreated {
            size_bytes: file.size,
            snapshot: Some(file.name.to_string()),
            reason: Some(snapshot.reason),
        };
        self.append(Append::quick(session, vec![record.into()]))?;
        Ok(Kept { file, took: begun.elapsed() })
    }

    /// Removes some of a session's snapshots, and tells how many there were.
    pub fn remove_snapshots(
        &self,
        session: SessionId,
        names: &[SnapshotName],
    ) -> Result<usize, SnapshotError> {
        let _one_at_a_time = self.keeping.lock(session.into());
        self.kept_snapshots().remove_all(session, names)
    }
}
