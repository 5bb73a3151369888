//! Errors as callers see them: one shape for every 4xx and 5xx, whether the service, a handler or the framework
//! refused. Which status a code has is in the table of codes.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use rekindle_service::error::ServiceError;
use rekindle_wire::code::{Code, ErrorBody, ErrorDetail, REFUSED};
use rekindle_wire::hint::Hint;

use crate::body;
use crate::hint_text::hint_text;

/// A request that was refused, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    advice: Option<Hint>,
    retry_after: Option<Duration>,
}

/// What a response that carries an error says in the log; its presence marks the response as one of ours.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl ApiError {
    /// Makes one without a hint.
    pub fn new(code: Code, message: impl Display) -> ApiError {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ApiError {
            status,
            code: code.as_str(),
            message: message.to_string(),
            hint: None,
            advice: None,
            retry_after: None,
        }
    }

    /// Something of ours is broken.
    pub fn internal(message: impl Display) -> ApiError {
        ApiError::new(Code::Internal, message)
    }

    /// The framework refused it, for a reason that only the status tells.
    pub fn refused(status: StatusCode) -> ApiError {
        let message = status.canonical_reason().unwrap_or(REFUSED).to_owned();
        ApiError { status, code: REFUSED, message, hint: None, advice: None, retry_after: None }
    }

    /// Adds what to do next, in words that hold for callers of the interface alone.
    pub fn hint(self, hint: impl Display) -> ApiError {
        ApiError { hint: Some(hint.to_string()), ..self }
    }

    /// Adds what to do next, in words for callers of the interface and as data for those who word it themselves.
    pub fn advise(self, advice: Hint) -> ApiError {
        ApiError { hint: Some(hint_text(&advice)), advice: Some(advice), ..self }
    }

    /// Adds how long the caller had better wait before the next try.
    pub fn retry_after(self, time: Duration) -> ApiError {
        ApiError { retry_after: Some(time), ..self }
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

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> ApiError {
        let refused = ApiError::new(error.code, error.text());
        error.hint.into_iter().fold(refused, ApiError::advise)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError { status, code, message, hint, advice, retry_after } = self;
        let hint = hint.as_deref().map(Cow::from);
        let error = ErrorDetail { code: code.into(), message: message.as_str().into(), hint, advice };
        // Words and a choice among kinds always become JSON.
        let written = serde_json::to_vec(&ErrorBody { error }).unwrap_or_default();
        let mut response = body::json(status, written);
        if let Some(time) = retry_after {
            // Whole seconds, and none too few.
            response.headers_mut().insert(RETRY_AFTER, (time.as_secs() + 1).into());
        }
        response.extensions_mut().insert(Noted { code, message });
        response
    }
}

#[cfg(test)]
mod tests {
    use rekindle_domain::access::Scope;

    use super::*;

    #[test]
    fn every_refusal_has_its_status() {
        let table = [
            (Code::InvalidAnswer, 400),
            (Code::TokenUnknown, 401),
            (Code::TokenScope, 403),
            (Code::SessionUnknown, 404),
            (Code::NoSuchMethod, 405),
            (Code::TooSlow, 408),
            (Code::NotNow, 409),
            (Code::TokenExpired, 410),
            (Code::TooLarge, 413),
            (Code::Internal, 500),
            (Code::OutcomeUnknown, 503),
            (Code::ShuttingDown, 503),
            (Code::StorageFull, 507),
        ];
        for (code, expected) in table {
            assert_eq!(ApiError::new(code, "").status().as_u16(), expected, "{code}");
        }
        assert!(Code::ALL.iter().all(|code| ApiError::new(*code, "").status().as_u16() == code.status()));
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

    #[tokio::test]
    async fn a_hint_comes_in_words_and_as_data() {
        let error =
            ServiceError::new(Code::TokenScope, "x").hint(Hint::CreateToken { scope: Some(Scope::Admin) });
        let response = ApiError::from(error).into_response();
        let body = axum::body::to_bytes(response.into_body(), 1000).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["advice"], serde_json::json!({"kind": "create_token", "scope": "admin"}));
        assert!(body["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--scope admin")), "{body}");
    }
}
