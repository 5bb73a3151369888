//! The errors of appending and loading: an append that fails is said so that the caller knows whether it happened.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::quarantine::Quarantine;
use rekindle_domain::session::IllegalTransition;

use crate::log::Damage;

/// An operation on a file or directory that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {path}")]
pub struct PathError {
    /// What was being done.
    pub doing: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

/// Adds to an error of the disk what was being done, and to what.
pub(crate) trait AtPath<T> {
    fn at_path(self, doing: &'static str, path: &Path) -> Result<T, PathError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at_path(self, doing: &'static str, path: &Path) -> Result<T, PathError> {
        self.map_err(|source| PathError { doing, path: path.to_owned(), source })
    }
}

/// Why an append was not accepted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The stream was not opened for writing.
    #[error("{0} is not open for writing")]
    NotOpen(StreamId),
    /// Its log is damaged: what is left is served read-only until it is repaired.
    #[error("the log of {stream} is damaged {damage}; nothing can be added to it")]
    Damaged {
        /// The stream.
        stream: StreamId,
        /// Where the damage begins, and what it is.
        damage: Arc<Damage>,
    },
    /// The event cannot follow what came before it.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// Someone else appended first.
    #[error("{stream} is at record {found}, not {expected}")]
    Moved {
        /// The stream.
        stream: StreamId,
        /// What the caller thought was the last record.
        expected: u64,
        /// What is.
        found: u64,
    },
    /// A record is too large for the log.
    #[error("a record of {size} bytes is larger than the {limit} a log takes; put the payload into a blob")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A payload is not JSON, or the list is empty.
    #[error("the records cannot be written: {0}")]
    Unwritable(String),
    /// The disk is full; the append did not happen.
    #[error("the disk is full; nothing was recorded, free some disk space and try again")]
    StorageFull(#[source] Arc<io::Error>),
    /// The disk failed; the append did not happen.
    #[error("the write-ahead log could not be written; nothing was recorded")]
    Storage(#[source] Arc<io::Error>),
    /// The disk failed in a way that leaves open whether the append will be seen after a restart.
    #[error(
        "the disk failed and it is not known whether this was recorded; repeat it with the same idempotency key"
    )]
    OutcomeUnknown(#[source] Arc<io::Error>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl AppendError {
    /// Says of a refused append whether room or the disk was the trouble.
    pub(crate) fn refused(error: &Arc<io::Error>) -> AppendError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                AppendError::StorageFull(error.clone())
            }
            _ => AppendError::Storage(error.clone()),
        }
    }
}

/// Why a session, or another stream, cannot be loaded at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such session.
    #[error("there is no session {0} here")]
    NotFound(SessionId),
    /// A newer version wrote its snapshot or token index; the files are left alone.
    #[error(
        "{path} has version {found}, newer than version {known} which this Rekindle knows; use a newer Rekindle for this session"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest known one.
        known: u32,
    },
    /// It made daemons crash: it is left alone until someone releases it.
    #[error(
        "{session} is quarantined: it made the daemon crash {}, the last time at {}: {}",
        quarantine.times(), quarantine.last, quarantine.message
    )]
    Quarantined {
        /// The session.
        session: SessionId,
        /// Why it is.
        quarantine: Arc<Quarantine>,
    },
    /// So much of its log is in no cache that it is read behind all others.
    #[error("{unread} bytes of the log of {session} are still to be read")]
    Unread {
        /// The session.
        session: SessionId,
        /// How many bytes of its log are to be read.
        unread: u64,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] PathError),
}
