//! Writing answers down: JSON in one piece, and work that blocks kept off the threads that serve connections.

use axum::http::StatusCode;
use axum::response::Response;
use rekindle_wire::code::Code;
use serde::Serialize;

pub(crate) use crate::body::json as bytes;
use crate::error::ApiError;

/// What a handler comes to.
pub(crate) type Answer = Result<Response, ApiError>;

/// Answers with a value.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value)
        .map_err(|error| ApiError::internal(format_args!("cannot write the answer: {error}")))?;
    Ok(bytes(status, body))
}

/// Does work that blocks, elsewhere. It is done to its end even if whoever asked goes away.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(ApiError::panicked(&*panic)),
            // Only a runtime that is going away drops work it has taken.
            Err(_) => Err(ApiError::new(Code::ShuttingDown, "the daemon is shutting down")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_an_internal_error_with_its_words() {
        let error = blocking(|| -> Result<(), _> { panic!("three is {}", 4) }).await.expect_err("a panic");
        assert_eq!((error.status().as_u16(), error.code()), (500, "internal"));
        assert!(format!("{error:?}").contains("three is 4"));
    }
}
