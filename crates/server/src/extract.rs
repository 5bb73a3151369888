//! What requests bring, checked before a handler sees it: names in paths, queries, keys and bodies. Everything that
//! is wrong with them is said here, with a code and where it is wrong.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use rekindle_domain::id::{PipelineId, SessionId, TaskId, WaitId};
use rekindle_domain::kept_snapshot::{BadSnapshotName, SnapshotName};
use rekindle_service::daemon::{BlobId, Daemon};
use rekindle_service::idempotency::Key;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::ApiError;

/// Largest body that is read: as long as the longest line an agent may write.
pub const MAX_BODY: usize = 64 << 20;

/// How long a body may take: on one machine the largest takes a tenth of a second, a stuck caller forever.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

/// Longest idempotency key: what others allow, and five times a UUID.
const MAX_KEY: usize = 255;

/// The session a path names.
pub(crate) struct Session(pub(crate) SessionId);

/// The session and its snapshot that a path names.
pub(crate) struct SessionSnapshot(pub(crate) SessionId, pub(crate) SnapshotName);

/// The wait a path names.
pub(crate) struct Wait(pub(crate) WaitId);

/// The task a path names.
pub(crate) struct Task(pub(crate) TaskId);

/// The run of a pipeline a path names.
pub(crate) struct Pipeline(pub(crate) PipelineId);

/// The blob a path names.
pub(crate) struct Blob(pub(crate) BlobId);

/// A query.
pub(crate) struct Ask<T>(pub(crate) T);

/// A body as it came.
pub(crate) struct Raw(pub(crate) Bytes);

/// The caller's key for something that must happen once.
pub(crate) struct Once(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Session {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Session, ApiError> {
        let text = name(parts, state).await;
        let id = text
            .parse()
            .map_err(|bad| ApiError::new(Code::SessionUnknown, bad).advise(Hint::ListSessions))?;
        Ok(Session(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SessionSnapshot {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<SessionSnapshot, ApiError> {
        let names = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (session, name) = names.map(|Path(names)| names).unwrap_or_default();
        let id = session
            .parse()
            .map_err(|bad| ApiError::new(Code::SessionUnknown, bad).advise(Hint::ListSessions))?;
        let name = name.parse().map_err(|bad: BadSnapshotName| {
            ApiError::new(Code::SnapshotNotFound, bad).advise(Hint::ListSnapshots)
        })?;
        Ok(SessionSnapshot(id, name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Wait, ApiError> {
        let text = name(parts, state).await;
        let id = text.parse().map_err(|bad| ApiError::new(Code::WaitUnknown, bad).advise(Hint::ListWaits))?;
        Ok(Wait(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Task {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Task, ApiError> {
        let text = name(parts, state).await;
        let id = text.parse().map_err(|bad| ApiError::new(Code::TaskUnknown, bad).advise(Hint::ListTasks))?;
        Ok(Task(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Pipeline {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Pipeline, ApiError> {
        Ok(Pipeline(Daemon::pipeline_named(&name(parts, state).await)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Blob {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Blob, ApiError> {
        let text = name(parts, state).await;
        let id = text.parse().map_err(|bad| ApiError::new(Code::BlobUnknown, bad))?;
        Ok(Blob(id))
    }
}

/// Returns what stands in the path; bytes that are no text name nothing, as the empty name does.
async fn name<S: Send + Sync>(parts: &mut Parts, state: &S) -> String {
    Path::<String>::from_request_parts(parts, state).await.map(|Path(text)| text).unwrap_or_default()
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Ask<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Ask<T>, ApiError> {
        let Query(query) = Query::try_from_uri(&parts.uri).map_err(|rejection| invalid(&rejection))?;
        Ok(Ask(query))
    }
}

/// Refuses whatever a query names, where there is nothing to ask.
pub(crate) fn no_query(uri: &Uri) -> Result<(), ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    match uri.query() {
        None => Ok(()),
        Some(_) => Query::<Nothing>::try_from_uri(uri).map(drop).map_err(|rejection| invalid(&rejection)),
    }
}

fn invalid(rejection: &QueryRejection) -> ApiError {
    ApiError::new(Code::InvalidQuery, rejection.body_text())
}

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Raw, ApiError> {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if length.and_then(|text| text.parse::<u64>().ok()).is_some_and(|length| length > MAX_BODY as u64) {
            return Err(too_large());
        }
        match tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await {
            Ok(Ok(bytes)) => Ok(Raw(bytes)),
            Ok(Err(rejection)) => Err(unread(&rejection)),
            Err(_) => Err(ApiError::new(
                Code::TooSlow,
                format_args!("the request body did not arrive within {} s", BODY_TIME.as_secs()),
            )),
        }
    }
}

fn unread(rejection: &BytesRejection) -> ApiError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => ApiError::new(Code::InvalidBody, rejection.body_text()),
    }
}

fn too_large() -> ApiError {
    let message = format!("the request body is larger than {} MiB", MAX_BODY >> 20);
    ApiError::new(Code::TooLarge, message).hint("put large content into files and name them")
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Once, ApiError> {
        idempotency_key(&parts.headers).map(Once)
    }
}

impl Once {
    /// Joins the key with what was asked for.
    pub(crate) fn of(&self, body: &[u8]) -> Option<Key> {
        self.0.clone().map(|key| Key { key, body: Sha256::digest(body).into() })
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let bytes = value.as_bytes();
    let good = (1..=MAX_KEY).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(key) if good && values.next().is_none() => Ok(Some(key.to_owned())),
        _ => {
            let message =
                format!("send one Idempotency-Key header of 1 to {MAX_KEY} visible ASCII characters");
            Err(ApiError::new(Code::InvalidIdempotencyKey, message).hint("a fresh UUID is a good key"))
        }
    }
}

/// Reads a body.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Err(ApiError::new(Code::InvalidBody, "the request body is empty; expected a JSON object"));
    }
    // The fields of a list would be taken by their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(ApiError::new(Code::InvalidBody, "an object is expected"));
    }
    // The error says what is wrong, and in which line and column.
    serde_json::from_slice(body).map_err(|error| ApiError::new(Code::InvalidBody, error))
}

/// Reads a body that may be left out.
pub(crate) fn json_if_any<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() { Ok(T::default()) } else { json(body) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rekindle_wire::request::{Change, NewMessage, NewSession, Resume};

    use super::*;

    fn key(values: &[&[u8]]) -> Result<Option<String>, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("idempotency-key", HeaderValue::from_bytes(value).expect("a header"));
        }
        idempotency_key(&headers)
    }

    #[test]
    fn a_key_is_one_header_of_visible_ascii() {
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[b"a-1!~"]), Ok(Some("a-1!~".to_owned())));
        assert!(key(&[&[b'k'; 255]]).is_ok());
        let bad: [&[&[u8]]; 6] =
            [&[b""], &[&[b'k'; 256]], &[b"a b"], &[b"a\tb"], &["é".as_bytes()], &[b"a", b"a"]];
        for values in bad {
            let error = key(values).expect_err("no key");
            assert_eq!(
                (error.status().as_u16(), error.code()),
                (400, "invalid_idempotency_key"),
                "{values:?}"
            );
        }
    }

    #[test]
    fn the_key_goes_with_the_hash_of_what_was_asked() {
        let once = Once(Some("k".to_owned())).of(b"{}").expect("a key");
        assert_eq!(once.body, <[u8; 32]>::from(Sha256::digest(b"{}")));
        assert_eq!(Once(None).of(b"{}"), None);
    }

    #[track_caller]
    fn refused<T: DeserializeOwned + std::fmt::Debug>(body: &str, words: &str) {
        let error = json::<T>(body.as_bytes()).expect_err("not accepted");
        assert_eq!((error.status().as_u16(), error.code()), (400, "invalid_body"));
        assert!(format!("{error:?}").contains(words), "{error:?} does not say {words:?}");
    }

    #[test]
    fn a_body_that_is_wrong_says_where() {
        refused::<Change>("", "empty");
        refused::<Change>("[\"a\"]", "an object");
        refused::<Change>("{\n\"title\": 7}", "line 2 column 10");
        refused::<Change>("{\"title\": \"a\"", "EOF");
        refused::<Change>("{} {}", "trailing characters");
        refused::<Change>("{\"titel\":\"a\"}", "unknown field `titel`");
        refused::<NewSession>("{\"working_dir\":\"/\"}", "missing field `agent`");
        refused::<NewSession>("{\"working_dir\":\"/\",\"agent\":7}", "a known agent's name, or");
        refused::<NewMessage>("{\"content\":\"a\",\"content\":\"b\"}", "duplicate field");
        refused::<NewMessage>("{\"content\":\"\u{0}\"}", "control character");
    }

    #[test]
    fn content_is_kept_as_it_was_written() {
        let new: NewMessage = json(br#"{"content": [ {"a" : 1.0} ]}"#).expect("a message");
        assert_eq!(new.content.0.get(), r#"[ {"a" : 1.0} ]"#);
        assert!(json_if_any::<Resume>(b" \n").is_ok_and(|resume| resume.token.is_none()));
    }
}
