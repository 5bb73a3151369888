//! Why something asked of the daemon was not done: one code for programs, words for people, and what to do next.
//! Errors of what lies below are mapped to these here, once.

use std::fmt::Display;

use rekindle_store::log::Damage;
use rekindle_store::{AppendError, OpenSessionError};

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
    /// What kind of no.
    pub refusal: Refusal,
    /// A stable word for programs.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl ServiceError {
    /// Makes one without a hint.
    pub fn new(refusal: Refusal, code: &'static str, message: impl Display) -> ServiceError {
        ServiceError { refusal, code, message: message.to_string(), hint: None }
    }

    /// The request makes no sense.
    pub fn invalid(code: &'static str, message: impl Display) -> ServiceError {
        ServiceError::new(Refusal::Invalid, code, message)
    }

    /// It cannot be done as things stand.
    pub fn conflict(code: &'static str, message: impl Display) -> ServiceError {
        ServiceError::new(Refusal::Conflict, code, message)
    }

    /// There is no such thing.
    pub fn not_found(code: &'static str, message: impl Display) -> ServiceError {
        ServiceError::new(Refusal::NotFound, code, message)
    }

    /// Adds what to do next.
    pub fn hint(self, hint: impl Display) -> ServiceError {
        ServiceError { hint: Some(hint.to_string()), ..self }
    }

    /// Nothing can be added to a log that is damaged.
    pub fn damaged(damage: &Damage) -> ServiceError {
        let message = format!("its log is damaged {damage}: nothing can be added to it");
        ServiceError::conflict("session_damaged", message).hint(DAMAGED)
    }

    /// Something is broken; every cause is told.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> ServiceError {
        ServiceError::new(Refusal::Internal, "internal", chain(error))
    }
}

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

impl From<AppendError> for ServiceError {
    fn from(error: AppendError) -> ServiceError {
        let (refusal, code) = match &error {
            AppendError::Damaged { .. } => (Refusal::Conflict, "session_damaged"),
            AppendError::Illegal(_) => (Refusal::Conflict, "not_now"),
            AppendError::Moved { .. } => (Refusal::Conflict, "moved"),
            AppendError::TooLarge { .. } => (Refusal::Invalid, "too_large"),
            AppendError::StorageFull(_) => (Refusal::StorageFull, "storage_full"),
            AppendError::OutcomeUnknown(_) => (Refusal::OutcomeUnknown, "outcome_unknown"),
            AppendError::Closed => (Refusal::Unavailable, "shutting_down"),
            AppendError::NotOpen(_) | AppendError::Unwritable(_) | AppendError::Storage(_) => {
                (Refusal::Internal, "storage")
            }
        };
        let hint = match code {
            "session_damaged" => Some(DAMAGED),
            "outcome_unknown" => Some("repeat it with the same Idempotency-Key"),
            "storage_full" => Some("free some room on the disk and try again"),
            _ => None,
        };
        ServiceError { refusal, code, message: chain(&error), hint: hint.map(Into::into) }
    }
}

impl From<OpenSessionError> for ServiceError {
    fn from(error: OpenSessionError) -> ServiceError {
        use rekindle_store::LoadError;
        match error {
            OpenSessionError::Append(error) => error.into(),
            OpenSessionError::Load(error @ LoadError::NotFound(_)) => {
                ServiceError::not_found("session_unknown", error).hint("rekindle ps -a")
            }
            OpenSessionError::Load(error @ LoadError::Newer { .. }) => {
                ServiceError::conflict("session_newer", error)
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
            LiveError::Answer(error) => ServiceError::invalid("answer_unfit", error),
            LiveError::NoSuchWait(wait) => {
                ServiceError::conflict("wait_closed", format!("the wait {wait} is not open any more"))
                    .hint("rekindle waits")
            }
            error => ServiceError::internal(&error),
        }
    }
}
