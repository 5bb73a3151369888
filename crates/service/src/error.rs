//! Errors of the daemon, why something asked of it was not done: one code for programs, words for people, and what to do next.
//! Errors of what lies below are mapped to these here, once.

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;

use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::token::Rejection;
use rekindle_store::blobs::BlobError;
use rekindle_store::kept_snapshots::SnapshotError;
use rekindle_store::log::Damage;
use rekindle_store::{AppendError, ForkError, KeepError, LoadError, OpenSessionError};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::{Health, HealthState, LEFT_ALONE};

use crate::ids::NoRandomness;

/// What comes of a request: done, or why not.
pub type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// A request that was not done.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    /// A stable word for programs.
    pub code: Code,
    /// What is wrong, for people; its causes come behind it.
    pub message: String,
    /// What to do next.
    pub hint: Option<Hint>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ServiceError {
    /// Makes one without a hint.
    pub fn new(code: Code, message: impl Display) -> ServiceError {
        ServiceError { code, message: message.to_string(), hint: None, source: None }
    }

    /// Makes one of the error that caused it.
    pub fn caused_by(code: Code, error: impl Error + Send + Sync + 'static) -> ServiceError {
        ServiceError { code, message: error.to_string(), hint: None, source: Some(Arc::new(error)) }
    }

    /// Something is broken.
    pub fn internal(error: impl Error + Send + Sync + 'static) -> ServiceError {
        ServiceError::caused_by(Code::Internal, error)
    }

    /// Adds what to do next.
    pub fn hint(self, hint: Hint) -> ServiceError {
        ServiceError { hint: Some(hint), ..self }
    }

    /// Returns the message with its causes in one line, as callers and logs get it.
    pub fn text(&self) -> String {
        chain(self)
    }

    /// There is no such session, or it is being removed: nobody who asks for it needs to know which.
    pub(crate) fn no_session(session: SessionId) -> ServiceError {
        ServiceError::new(Code::SessionUnknown, format!("there is no session {session} here"))
            .hint(Hint::ListSessions)
    }

    /// There is no such wait.
    pub(crate) fn no_wait(wait: WaitId) -> ServiceError {
        ServiceError::new(Code::WaitUnknown, format!("there is no wait {wait} here")).hint(Hint::ListWaits)
    }

    /// A wait is over.
    pub(crate) fn wait_closed(wait: WaitId) -> ServiceError {
        ServiceError::new(Code::WaitClosed, format!("the wait {wait} is no longer open"))
            .hint(Hint::ListWaits)
    }

    /// What was looked at has changed since.
    pub(crate) fn moved() -> ServiceError {
        ServiceError::new(Code::Moved, "the session has changed in the meantime")
    }

    /// There is nothing to cancel, and nothing to wait on.
    pub(crate) fn nothing_running() -> ServiceError {
        ServiceError::new(Code::NothingRunning, "nothing is running in this session")
    }

    /// The daemon is leaving.
    pub(crate) fn leaving() -> ServiceError {
        ServiceError::new(Code::ShuttingDown, "the daemon is shutting down")
    }

    /// Nothing can be added to a log that is damaged.
    pub fn damaged(damage: &Damage) -> ServiceError {
        ServiceError::new(Code::SessionDamaged, damaged_log(damage)).hint(Hint::SetAside)
    }
}

/// Says that a log is damaged, where, and what that means.
pub(crate) fn damaged_log(damage: &Damage) -> String {
    format!("its log is damaged {damage}: nothing can be added to it")
}

/// Returns the health of a session that cannot be loaded, or not yet.
pub fn unloadable(error: &LoadError) -> Health {
    let (state, why) = match error {
        LoadError::Quarantined { quarantine, .. } => {
            let why = format!("it made the daemon crash {}: {}", quarantine.times(), quarantine.message);
            (HealthState::Quarantined, why)
        }
        LoadError::Unread { unread, .. } => {
            let megabytes = unread.div_ceil(1_000_000);
            let detail = format!(
                "{megabytes} MB of its log are still being read; until then it is shown as it started"
            );
            return Health { state: HealthState::Reading, detail: Some(detail) };
        }
        _ => (HealthState::Degraded, chain(error)),
    };
    Health { state, detail: Some(format!("{why}; {LEFT_ALONE}")) }
}

/// Returns an error with its causes in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

impl From<NoRandomness> for ServiceError {
    fn from(error: NoRandomness) -> ServiceError {
        ServiceError::caused_by(Code::NoRandomness, error)
    }
}

impl From<BlobError> for ServiceError {
    fn from(error: BlobError) -> ServiceError {
        let code = match error {
            BlobError::Missing(_) => Code::BlobUnknown,
            BlobError::Damaged { .. } => Code::BlobDamaged,
            BlobError::TooLarge(_) | BlobError::ContentTooLarge => Code::TooLarge,
            BlobError::Io(ref error) if is_full(&error.source) => {
                return AppendError::StorageFull(Arc::new(std::io::ErrorKind::StorageFull.into())).into();
            }
            BlobError::Io(_) | BlobError::BatchFailed(_) | BlobError::Source(_) | BlobError::Sink(_) => {
                Code::Storage
            }
        };
        ServiceError::caused_by(code, error).hint(Hint::ExamineHome)
    }
}

/// Returns the code of a snapshot's trouble.
pub(crate) fn snapshot_code(error: &SnapshotError) -> Code {
    match error {
        SnapshotError::NotFound { .. } => Code::SnapshotNotFound,
        SnapshotError::Version { .. } => Code::SnapshotVersion,
        SnapshotError::Corrupted { .. } => Code::SnapshotCorrupted,
        SnapshotError::Io(error) if is_full(&error.source) => Code::StorageFull,
        SnapshotError::Io(_) => Code::Storage,
    }
}

impl From<SnapshotError> for ServiceError {
    fn from(error: SnapshotError) -> ServiceError {
        let code = snapshot_code(&error);
        let hint = match code {
            Code::SnapshotNotFound => Some(Hint::ListSnapshots),
            Code::SnapshotVersion => Some(Hint::UseNewerVersion),
            Code::StorageFull => Some(Hint::FreeDiskSpace),
            _ => Some(Hint::ExamineHome),
        };
        ServiceError { hint, ..ServiceError::caused_by(code, error) }
    }
}

impl From<KeepError> for ServiceError {
    fn from(error: KeepError) -> ServiceError {
        match error {
            KeepError::Write(error) => error.into(),
            KeepError::Append(error) => error.into(),
            KeepError::Unusable(_) => ServiceError::caused_by(Code::NotNow, error),
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl From<AppendError> for ServiceError {
    fn from(error: AppendError) -> ServiceError {
        let code = match &error {
            AppendError::Damaged { .. } => Code::SessionDamaged,
            AppendError::IllegalTransition(_) => Code::NotNow,
            AppendError::Moved { .. } => Code::Moved,
            AppendError::TooLarge { .. } => Code::TooLarge,
            AppendError::StorageFull(_) => Code::StorageFull,
            AppendError::OutcomeUnknown(_) => Code::OutcomeUnknown,
            AppendError::Closed => Code::ShuttingDown,
            AppendError::NotOpen(_) | AppendError::Unwritable(_) | AppendError::Storage(_) => Code::Storage,
        };
        let hint = match code {
            Code::SessionDamaged => Some(Hint::SetAside),
            Code::OutcomeUnknown => Some(Hint::RepeatWithSameKey),
            Code::StorageFull => Some(Hint::FreeDiskSpace),
            _ => None,
        };
        ServiceError { hint, ..ServiceError::caused_by(code, error) }
    }
}

impl From<ForkError> for ServiceError {
    fn from(error: ForkError) -> ServiceError {
        match error {
            ForkError::Append(error) => error.into(),
            ForkError::Parent(error) => error.into(),
            ForkError::ParentGone(session) => ServiceError::no_session(session),
            ForkError::File(error) => ServiceError::caused_by(Code::Storage, error).hint(Hint::ExamineHome),
            error @ ForkError::NoSuchRecord { .. } => ServiceError::caused_by(Code::HistoryMissing, error),
            error @ (ForkError::NoFork | ForkError::Exists(_)) => ServiceError::internal(error),
        }
    }
}

impl From<OpenSessionError> for ServiceError {
    fn from(error: OpenSessionError) -> ServiceError {
        match error {
            OpenSessionError::Append(error) => error.into(),
            OpenSessionError::Load(error @ LoadError::NotFound(_)) => {
                ServiceError::caused_by(Code::SessionUnknown, error).hint(Hint::ListSessions)
            }
            OpenSessionError::Load(error @ LoadError::Newer { .. }) => {
                ServiceError::caused_by(Code::SessionNewer, error).hint(Hint::UseNewerVersion)
            }
            OpenSessionError::Load(error @ LoadError::Quarantined { .. }) => {
                ServiceError::caused_by(Code::SessionQuarantined, error).hint(Hint::ReleaseSession)
            }
            OpenSessionError::Load(error @ LoadError::Read(_)) => {
                ServiceError::caused_by(Code::Storage, error).hint(Hint::ExamineHome)
            }
            error => ServiceError::internal(error),
        }
    }
}

impl From<Rejection> for ServiceError {
    fn from(why: Rejection) -> ServiceError {
        let code = match why {
            Rejection::Unknown => Code::TokenUnknown,
            Rejection::Scope => Code::TokenScope,
            Rejection::Consumed | Rejection::Used => Code::TokenConsumed,
            Rejection::Expired => Code::TokenExpired,
            Rejection::Revoked(_) => Code::TokenRevoked,
        };
        ServiceError::new(code, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors that callers cannot tell apart are equal.
    impl PartialEq for ServiceError {
        fn eq(&self, other: &ServiceError) -> bool {
            (self.code, self.text(), &self.hint) == (other.code, other.text(), &other.hint)
        }
    }

    #[test]
    fn every_rejection_keeps_its_word() {
        let revoked = Rejection::Revoked("cancelled".into());
        for (why, word) in [
            (Rejection::Unknown, "token_unknown"),
            (Rejection::Scope, "token_scope"),
            (Rejection::Consumed, "token_consumed"),
            (Rejection::Used, "token_consumed"),
            (Rejection::Expired, "token_expired"),
            (revoked, "token_revoked"),
        ] {
            assert_eq!(ServiceError::from(why).code.as_str(), word);
        }
    }

    #[test]
    fn the_causes_of_an_error_are_kept_behind_it_and_told_once() {
        let full = std::io::Error::from_raw_os_error(28);
        let words = full.to_string();
        let error = ServiceError::from(AppendError::StorageFull(Arc::new(full)));
        assert_eq!((error.code, error.hint.clone()), (Code::StorageFull, Some(Hint::FreeDiskSpace)));
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let innermost = causes.last().expect("a cause");
        assert_eq!(innermost.to_string(), words);
        assert_eq!(error.text().matches(&words).count(), 1, "{}", error.text());
        assert!(error.text().starts_with(&error.message), "{}", error.text());
    }
}
