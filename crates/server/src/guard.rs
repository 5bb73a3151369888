//! The guard of the door from elsewhere: before anything is done for a request that came over TCP, its host, its origin and
//! its access token are looked at. Whoever is refused is logged, without what was shown, and nothing is done.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use rekindle_domain::access::{Bearer, Scope, Shown};
use rekindle_domain::id::AccessId;
use rekindle_service::access::Access;

use crate::caller::Caller;
use crate::code::OwnCode;
use crate::error::ApiError;
use crate::hosts::Ours;
use crate::quota::Quota;
use crate::respond;

/// How often it is looked whether the list of tokens is another one: streams of a token that was taken back end within it.
pub(crate) const REFRESH: Duration = Duration::from_millis(250);

/// Refusals that are logged in a minute: enough to see who it is, too few to fill a disk.
const LOGGED: u32 = 120;

/// What the guard knows.
#[derive(Clone)]
pub(crate) struct Guard {
    access: Arc<Access>,
    names: Arc<[String]>,
    tls: bool,
    logged: Arc<Quota>,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Who it is.
    pub(crate) remote: SocketAddr,
    /// Where it arrived.
    pub(crate) local: SocketAddr,
    /// It has shown a good token.
    pub(crate) known: Arc<AtomicBool>,
}

impl Guard {
    /// Makes one that lets in whom the list has.
    pub(crate) fn new(access: Arc<Access>, names: &[String], tls: bool) -> Guard {
        Guard { access, names: names.into(), tls, logged: Arc::new(Quota::new(LOGGED)) }
    }

    /// Looks at what a request shows; none if it needs to show nothing.
    fn examine(&self, peer: &Peer, request: &Request) -> Result<Option<(Shown, Scope)>, ApiError> {
        let ours = Ours { local: peer.local, names: &self.names, tls: self.tls };
        ours.check(request.uri(), request.headers())?;
        // It says that we are there, which whoever asks knows by now.
        if request.uri().path() == "/healthz" {
            return Ok(None);
        }
        let needs = needed(request.method(), request.uri().path());
        shown(request.headers()).map(|shown| Some((shown, needs)))
    }

    /// Lets in whom the list has.
    async fn admit(
        &self,
        peer: &Peer,
        shown: Result<Option<(Shown, Scope)>, ApiError>,
    ) -> Result<Option<Bearer>, ApiError> {
        let Some((shown, needs)) = shown? else { return Ok(None) };
        let access = Arc::clone(&self.access);
        let bearer = respond::blocking(move || Ok(access.judge(&shown, needs)?)).await?;
        peer.known.store(true, Ordering::Relaxed);
        Ok(Some(bearer))
    }

    fn log(&self, peer: &Peer, method: &Method, path: Option<&MatchedPath>, error: &ApiError) {
        let path = path.map_or("-", MatchedPath::as_str);
        let (status, code) = (error.status().as_u16(), error.code());
        match self.logged.take() {
            Some(0) => tracing::warn!(peer = %peer.remote, %method, path, status, code, "refused"),
            Some(untold) => {
                tracing::warn!(peer = %peer.remote, %method, path, status, code, untold, "refused");
            }
            None => {}
        }
    }
}

/// Lets a request in, or refuses it.
pub(crate) async fn guard(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let Some(peer) = request.extensions().get::<Peer>().cloned() else {
        return ApiError::internal("a request came through the wrong door").into_response();
    };
    let shown = guard.examine(&peer, &request);
    match guard.admit(&peer, shown).await {
        Ok(None) => next.run(request).await,
        Ok(Some(bearer)) => {
            request.extensions_mut().insert(Caller::known_as(&bearer.name));
            while_good(next.run(request).await, guard.access, bearer.id)
        }
        Err(error) => {
            guard.log(&peer, request.method(), request.extensions().get(), &error);
            refuse(error)
        }
    }
}

/// Returns what a token must be allowed for a request. Whoever may answer a wait may also make a token that does.
pub(crate) fn needed(method: &Method, path: &str) -> Scope {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Scope::Read;
    }
    let answers = path.starts_with("/api/waits/") && (path.ends_with("/answer") || path.ends_with("/token"));
    if *method == Method::POST && answers { Scope::Answer } else { Scope::Admin }
}

/// Returns the token that a request shows.
fn shown(headers: &HeaderMap) -> Result<Shown, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let missing = || {
        ApiError::new(OwnCode::TokenMissing, "an access token is needed").hint(
            "send Authorization: Bearer TOKEN, or give commands --token-file FILE; on the daemon's machine, rekindle token create makes one",
        )
    };
    let value = values.next().ok_or_else(missing)?;
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let bearer = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, token) = bearer.filter(|_| values.next().is_none()).ok_or_else(missing)?;
    let unknown = |denial: rekindle_domain::access::Denial| {
        ApiError::new(OwnCode::TokenUnknown, denial)
            .hint("on the daemon's machine, rekindle token create makes one")
    };
    token.trim().parse().map_err(unknown)
}

/// Writes a refusal, and what would have been needed.
fn refuse(error: ApiError) -> Response {
    let challenge = match error.code() {
        "token_missing" => Some("Bearer realm=\"rekindle\""),
        "token_unknown" | "token_expired" | "token_revoked" => {
            Some("Bearer realm=\"rekindle\", error=\"invalid_token\"")
        }
        "token_scope" => Some("Bearer realm=\"rekindle\", error=\"insufficient_scope\""),
        _ => None,
    };
    let mut response = error.into_response();
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

/// Ends a stream of events when its token is not good any more.
fn while_good(response: Response, access: Arc<Access>, id: AccessId) -> Response {
    let stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !stream {
        return response;
    }
    let ended = async move {
        let mut changed = access.listen();
        while access.is_good(id) && changed.changed().await.is_ok() {}
        tracing::info!(token = %id, "a stream ends: its token is not good any more");
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(ended))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_request_needs() {
        for (method, path, needs) in [
            (Method::GET, "/api/sessions", Scope::Read),
            (Method::HEAD, "/api/waits/wait_1/answer", Scope::Read),
            (Method::GET, "/metrics", Scope::Read),
            (Method::POST, "/api/waits/wait_1/answer", Scope::Answer),
            (Method::POST, "/api/waits/wait_1/token", Scope::Answer),
            (Method::DELETE, "/api/waits/wait_1/token", Scope::Admin),
            (Method::POST, "/api/sessions/answer", Scope::Admin),
            (Method::POST, "/api/sessions/sess_1/resume", Scope::Admin),
            (Method::POST, "/api/shutdown", Scope::Admin),
            (Method::OPTIONS, "/api/sessions", Scope::Admin),
            (Method::PATCH, "/api/sessions/sess_1", Scope::Admin),
        ] {
            assert_eq!(needed(&method, path), needs, "{method} {path}");
        }
    }

    #[test]
    fn a_token_is_shown_once_and_as_a_bearer() {
        let text = format!("tok_1.{}", "0".repeat(64));
        let code = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
            }
            shown(&headers).map(|shown| shown.id.to_string()).map_err(|error| error.code())
        };
        let (bearer, lower) = (format!("Bearer {text}"), format!("bearer  {text} "));
        assert_eq!(code(&[&bearer]), Ok("tok_1".into()));
        assert_eq!(code(&[&lower]), Ok("tok_1".into()));
        assert_eq!(code(&[]), Err("token_missing"));
        assert_eq!(code(&[&bearer, &bearer]), Err("token_missing"));
        assert_eq!(code(&[&text]), Err("token_missing"));
        assert_eq!(code(&[&format!("Basic {text}")]), Err("token_missing"));
        assert_eq!(code(&["Bearer x"]), Err("token_unknown"));
    }
}
