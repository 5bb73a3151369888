//! Why something asked of the daemon was not done: one code for programs, words for people, and what to do next.
//! Errors of what lies below are mapped to these here, once.

use std::fmt::Display;
use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_store::blobs::BlobError;
use rekindle_store::log::Damage;
use rekindle_store::{AppendError, OpenSessionError};

use crate::code::Code;
use crate::live::LiveError;

/// What to do about a damaged session.
const DAMAGED: &str = "rekindle log shows what is whole, rekindle doctor says more; rekindle rm --force ends its agent and sets its files aside";

/// What kind of no it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense.
    Invalid,
    /// The token is unknown or its secret is wrong.
    Unauthorized,
    /// The token is for something else.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// It cannot be done as things stand.
    Conflict,
    /// It could have been done once.
    Gone,
    /// More was brought than is taken.
    TooLarge,
    /// The disk is full.
    StorageFull,
    /// It may or may not have been done.
    OutcomeUnknown,
    /// Not now.
    Unavailable,
    /// Something is broken.
    Internal,
}

/// A request that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    /// A stable word for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl ServiceError {
    /// Makes one without a hint.
    pub fn new(code: Code, message: impl Display) -> ServiceError {
        ServiceError { code, message: message.to_string(), hint: None }
    }

    /// Returns what kind of no it is.
    pub fn refusal(&self) -> Refusal {
        self.code.refusal()
    }

    /// Adds what to do next.
    pub fn hint(self, hint: impl Display) -> ServiceError {
        ServiceError { hint: Some(hint.to_string()), ..self }
    }

    /// There is no such session, or it is being removed: nobody who asks for it needs to know which.
    pub(crate) fn no_session(session: SessionId) -> ServiceError {
        ServiceError::new(Code::SessionUnknown, format!("there is no session {session} here"))
            .hint("rekindle ps -a")
    }

    /// Nothing can be added to a log that is damaged.
    pub fn damaged(damage: &Damage) -> ServiceError {
        let message = format!("its log is damaged {damage}: nothing can be added to it");
        ServiceError::new(Code::SessionDamaged, message).hint(DAMAGED)
    }

    /// Something is broken; every cause is told.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> ServiceError {
        ServiceError::new(Code::Internal, chain(error))
    }
}

/// How the detail of a session's health ends that cannot be loaded, and is left alone.
pub const LEFT_ALONE: &str = "nothing can be added to it";

/// Returns an error with its causes in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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

impl From<BlobError> for ServiceError {
    fn from(error: BlobError) -> ServiceError {
        let code = match error {
            BlobError::Missing(_) => Code::BlobUnknown,
            BlobError::Damaged { .. } => Code::BlobDamaged,
            BlobError::TooLarge(_) => Code::TooLarge,
            BlobError::Io { ref source, .. } if is_full(source) => {
                return AppendError::StorageFull(Arc::new(std::io::ErrorKind::StorageFull.into())).into();
            }
            BlobError::Io { .. } => Code::Storage,
        };
        ServiceError::new(code, chain(&error)).hint("rekindle doctor says more")
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl From<AppendError> for ServiceError {
    fn from(error: AppendError) -> ServiceError {
        let code = match &error {
            AppendError::Damaged { .. } => Code::SessionDamaged,
            AppendError::Illegal(_) => Code::NotNow,
            AppendError::Moved { .. } => Code::Moved,
            AppendError::TooLarge { .. } => Code::TooLarge,
            AppendError::StorageFull(_) => Code::StorageFull,
            AppendError::OutcomeUnknown(_) => Code::OutcomeUnknown,
            AppendError::Closed => Code::ShuttingDown,
            AppendError::NotOpen(_) | AppendError::Unwritable(_) | AppendError::Storage(_) => Code::Storage,
        };
        let hint = match code {
            Code::SessionDamaged => Some(DAMAGED),
            Code::OutcomeUnknown => Some("repeat it with the same Idempotency-Key"),
            Code::StorageFull => Some("free some room on the disk and try again"),
            _ => None,
        };
        ServiceError { code, message: chain(&error), hint: hint.map(Into::into) }
    }
}

impl From<OpenSessionError> for ServiceError {
    fn from(error: OpenSessionError) -> ServiceError {
        use rekindle_store::LoadError;
        match error {
            OpenSessionError::Append(error) => error.into(),
            OpenSessionError::Load(error @ LoadError::NotFound(_)) => {
                ServiceError::new(Code::SessionUnknown, error).hint("rekindle ps -a")
            }
            OpenSessionError::Load(error @ LoadError::Newer { .. }) => {
                ServiceError::new(Code::SessionNewer, error)
                    .hint("its files are left alone, and other sessions are not concerned")
            }
            OpenSessionError::Load(error @ LoadError::Read { .. }) => {
                ServiceError::new(Code::Storage, chain(&error)).hint("rekindle doctor says what can be done")
            }
            error => ServiceError::internal(&error),
        }
    }
}

impl From<LiveError> for ServiceError {
    fn from(error: LiveError) -> ServiceError {
        match error {
            LiveError::Append(error) => error.into(),
            LiveError::Session(error) => error.into(),
            LiveError::Blob(error @ BlobError::Io { .. }) => error.into(),
            LiveError::Answer(error) => ServiceError::new(Code::AnswerUnfit, error),
            LiveError::NoSuchWait(wait) => {
                ServiceError::new(Code::WaitClosed, format!("the wait {wait} is not open any more"))
                    .hint("rekindle waits")
            }
            error => ServiceError::internal(&error),
        }
    }
}
