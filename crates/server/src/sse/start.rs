//! Where a stream begins: behind the last event a caller has, behind a number it names, or at the beginning.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use rekindle_service::daemon::Since;
use rekindle_wire::code::Code;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ApiError;
use crate::extract::Ask;

/// Where a stream begins, as a request says it, and whether a person looks at it.
pub(crate) struct Start {
    pub(super) since: Since,
    pub(super) attended: bool,
}

/// What a query says of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// Behind this record; 0 for the beginning.
    #[serde(default)]
    after: u64,
    /// A person looks at what is told: notifications that are for sessions which nobody looks at are left out meanwhile.
    #[serde(default)]
    attended: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Start {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Start, ApiError> {
        let Ask(After { after, attended }) = Ask::from_request_parts(parts, state).await?;
        // A browser that comes back repeats the query it first came with; what it has seen since counts.
        let since = last_event_id(&parts.headers)?.unwrap_or(Since::After(after));
        Ok(Start { since, attended })
    }
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Since>, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().map(str::trim).unwrap_or("?");
    if text.is_empty() {
        return Ok(None);
    }
    let error = || {
        ApiError::new(
            Code::InvalidLastEventId,
            "Last-Event-ID must be the id of an event: a number, a dot, 16 hex digits",
        )
        .hint("leave it out to begin at the start")
    };
    since(text).map(Some).ok_or_else(error)
}

/// Reads a number, without the sign that `parse` would also take.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads the id of an event: `seq.h`, or `seq` alone for a record of an older version, that has no hash.
pub fn since(id: &str) -> Option<Since> {
    match id.split_once('.') {
        Some((seq, hash)) => Some(Since::Point(number(seq)?, hash.parse().ok()?)),
        None => Some(Since::After(number(id)?)),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use super::*;

    async fn start(query: &str, id: Option<&str>) -> Result<Since, (u16, &'static str)> {
        let mut request = Request::builder().uri(format!("/x{query}"));
        if let Some(id) = id {
            request = request.header("Last-Event-ID", id);
        }
        let (mut parts, _) = request.body(Body::empty()).expect("a request").into_parts();
        let start = Start::from_request_parts(&mut parts, &()).await;
        start.map(|start| start.since).map_err(|error| (error.status().as_u16(), error.code()))
    }

    #[tokio::test]
    async fn the_last_event_counts_before_the_query() {
        let point = Since::Point(7, "4df9e30ab1d947d5".parse().expect("a hash"));
        assert_eq!(start("", None).await, Ok(Since::After(0)));
        assert_eq!(start("?after=3", None).await, Ok(Since::After(3)));
        assert_eq!(start("?after=3", Some("7.4df9e30ab1d947d5")).await, Ok(point));
        assert_eq!(start("?after=3", Some("")).await, Ok(Since::After(3)));
        assert_eq!(start("", Some("7")).await, Ok(Since::After(7)));
    }

    #[tokio::test]
    async fn an_id_that_is_none_of_ours_is_refused() {
        let long = "9".repeat(30);
        for id in [
            "x",
            "7.",
            ".4df9e30ab1d947d5",
            "7.4DF9E30AB1D947D5",
            "7.4df9",
            "+7",
            "-1",
            "7.4df9e30ab1d947d5.1",
            &long,
        ] {
            assert_eq!(start("", Some(id)).await, Err((400, "invalid_last_event_id")), "{id}");
        }
        for query in ["?after=", "?after=x", "?after=-1", "?afer=1", "?after=1&after=2"] {
            assert_eq!(start(query, None).await, Err((400, "invalid_query")), "{query}");
        }
    }
}
