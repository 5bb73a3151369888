//! Writing answers down: JSON in one piece, and work that blocks kept off the threads that serve connections.

use axum::http::StatusCode;
use axum::response::Response;
use rekindle_service::crash_report;
use rekindle_wire::code::Code;
use serde::Serialize;
use tracing::Span;

pub(crate) use crate::body::json as bytes;
use crate::error::ApiError;

/// What a handler comes to.
pub(crate) type Answer = Result<Response, ApiError>;

/// Room for most answers, a session's among them: they are written down without moving.
const USUAL: usize = 2048;

/// Answers with a value.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let mut body = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut body, value)
        .map_err(|error| ApiError::internal(format_args!("cannot write the response: {error}")))?;
    Ok(bytes(status, body))
}

/// Does work that blocks, elsewhere, for the same session. It is done to its end even if whoever asked goes away.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let (noted, span) = (crash_report::current(), Span::current());
    let work = move || {
        let _in_session = span.entered();
        let _at_work = noted.map(|noted| crash_report::at_work(noted.session, noted.doing));
        work()
    };
    // Only a runtime that is going away drops work it has taken: a panic ends the process.
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ApiError::new(Code::ShuttingDown, "the daemon is shutting down")))
}
