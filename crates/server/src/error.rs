//! Errors as callers see them: one shape for every 4xx and 5xx, whether the service, a handler or the framework
//! refused. What the service says is mapped to a status here, once.

use std::any::Any;
use std::fmt::Display;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rekindle_service::code::Refusal;
use rekindle_service::error::ServiceError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::body;
use crate::code::{AnyCode, OwnCode, REFUSED};

/// A request that was refused, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

/// What a response that carries an error says in the log; its presence marks the response as one of ours.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// What every 4xx and 5xx carries.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Envelope<'a> {
    /// What is wrong.
    error: Shape<'a>,
}

/// What is wrong with a request.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorDetail")]
struct Shape<'a> {
    /// A stable word for programs.
    #[schemars(with = "AnyCode")]
    code: &'a str,
    /// What is wrong, for people.
    message: &'a str,
    /// What to do next, if there is anything to advise.
    hint: Option<&'a str>,
}

impl ApiError {
    /// Makes one without a hint.
    pub fn new(code: OwnCode, message: impl Display) -> ApiError {
        ApiError { status: code.status(), code: code.as_str(), message: message.to_string(), hint: None }
    }

    /// Something of ours is broken.
    pub fn internal(message: impl Display) -> ApiError {
        ApiError::new(OwnCode::Internal, message)
    }

    /// The framework refused it, for a reason that only the status tells.
    pub fn refused(status: StatusCode) -> ApiError {
        let message = status.canonical_reason().unwrap_or(REFUSED).to_owned();
        ApiError { status, code: REFUSED, message, hint: None }
    }

    /// Something of ours panicked.
    pub fn panicked(panic: &(dyn Any + Send)) -> ApiError {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        ApiError::internal(format_args!("a bug in the daemon: {}", words.unwrap_or("it panicked")))
            .hint("the daemon's log says where; please report it")
    }

    /// Adds what to do next.
    pub fn hint(self, hint: impl Display) -> ApiError {
        ApiError { hint: Some(hint.to_string()), ..self }
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the stable word for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

/// Returns the status that stands for a refusal of the service.
pub fn status(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::Invalid => StatusCode::BAD_REQUEST,
        Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
        Refusal::Forbidden => StatusCode::FORBIDDEN,
        Refusal::NotFound => StatusCode::NOT_FOUND,
        Refusal::Conflict => StatusCode::CONFLICT,
        Refusal::Gone => StatusCode::GONE,
        Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        Refusal::OutcomeUnknown | Refusal::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> ApiError {
        let ServiceError { code, message, hint } = error;
        ApiError { status: status(code.refusal()), code: code.as_str(), message, hint }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError { status, code, message, hint } = self;
        let shape = Shape { code, message: &message, hint: hint.as_deref() };
        // Three strings always become JSON.
        let written = serde_json::to_vec(&Envelope { error: shape }).unwrap_or_default();
        let mut response = body::json(status, written);
        response.extensions_mut().insert(Noted { code, message });
        response
    }
}

#[cfg(test)]
mod tests {
    use rekindle_service::code::Code;

    use super::*;

    #[test]
    fn every_refusal_has_its_status() {
        let table = [
            (Refusal::Invalid, 400),
            (Refusal::Unauthorized, 401),
            (Refusal::Forbidden, 403),
            (Refusal::NotFound, 404),
            (Refusal::Conflict, 409),
            (Refusal::Gone, 410),
            (Refusal::TooLarge, 413),
            (Refusal::StorageFull, 507),
            (Refusal::OutcomeUnknown, 503),
            (Refusal::Unavailable, 503),
            (Refusal::Internal, 500),
        ];
        for (refusal, expected) in table {
            assert_eq!(status(refusal).as_u16(), expected, "{refusal:?}");
        }
    }

    #[tokio::test]
    async fn the_service_s_words_come_through_and_a_missing_hint_is_null() {
        let error = ServiceError::new(Code::TokenExpired, "the token \"x\" expired");
        let response = ApiError::from(error).into_response();
        assert_eq!(response.status(), StatusCode::GONE);
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = axum::body::to_bytes(response.into_body(), 1000).await.expect("a body");
        let expected =
            r#"{"error":{"code":"token_expired","message":"the token \"x\" expired","hint":null}}"#;
        assert_eq!(body, expected);
    }
}
