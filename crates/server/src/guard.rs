//! The guard of the door from elsewhere: before anything is done for a request that came over TCP, its host, its origin and
//! its access token are looked at. Whoever is refused is logged, without what was shown, and nothing is done. A wait may be seen and
//! answered by whoever has a resume token for it, and nothing else; too many wrong ones from one network are not looked at any more.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use rekindle_domain::access::{PresentedToken, Scope};
use rekindle_domain::id::AccessId;
use rekindle_service::access::Access;
use rekindle_service::daemon::{Daemon, TokenUse};
use rekindle_service::hurried;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::answer_page::ANSWER_PAGE;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::extract::BODY_TIME;
use crate::failure_limit::{FailureLimit, Network};
use crate::hosts::Ours;
use crate::rate_limit::RateLimit;
use crate::respond;

/// How often it is looked whether the list of tokens is another one: streams of a token that was taken back end within it.
pub(crate) const REFRESH: Duration = Duration::from_millis(250);

/// The path that anyone may ask for: whether anyone listens.
pub(crate) const HEALTH: &str = "/healthz";

/// Refusals that are logged in a minute: enough to see who it is, too few to fill a disk.
const LOGGED: u32 = 120;

/// Largest body of a caller who shows nothing but a resume token: an answer is a few words, and who sends it is not known yet.
const MOST_UNKNOWN: usize = 64 << 10;

/// Resume tokens of strangers that are looked at at the same time: others wait, so that guessing keeps nobody else waiting.
const AT_ONCE: usize = 2;

/// The time in which wrong resume tokens of a network are counted.
const FAILURE_WINDOW: Duration = Duration::from_secs(60);

/// What the guard knows.
#[derive(Clone)]
pub(crate) struct Guard {
    daemon: Arc<Daemon>,
    access: Arc<Access>,
    names: Arc<[String]>,
    tls: bool,
    logged: Arc<RateLimit>,
    unknown: Arc<Semaphore>,
    failures: Arc<FailureLimit>,
    /// Held while a resume token is looked at that comes from where too many wrong ones came from.
    suspects: Arc<Semaphore>,
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
    pub(crate) fn new(daemon: Arc<Daemon>, names: &[String], tls: bool) -> Guard {
        Guard {
            access: Arc::clone(daemon.access()),
            daemon,
            names: names.into(),
            tls,
            logged: Arc::new(RateLimit::new(LOGGED)),
            unknown: Arc::new(Semaphore::new(AT_ONCE)),
            failures: Arc::new(FailureLimit::new(hurried("FAILURE_WINDOW", FAILURE_WINDOW))),
            suspects: Arc::new(Semaphore::new(1)),
        }
    }

    /// Lets in whom the list has, or whoever brings a resume token; returns the request with the access token that let it in.
    async fn admit(
        &self,
        peer: &Peer,
        mut request: Request,
    ) -> Result<(Request, Option<AccessId>), ApiError> {
        let ours = Ours { local: peer.local, names: &self.names, tls: self.tls };
        ours.check(request.uri(), request.headers())?;
        if is_open_to_all(request.method(), request.uri().path()) {
            return Ok((request, None));
        }
        if !request.headers().contains_key(AUTHORIZATION)
            && let Some(way) = by_token(request.method(), request.uri().path())
        {
            return Ok((self.admit_by_token(peer, request, way).await?, None));
        }
        let (shown, needs) = (bearer(request.headers())?, needed(request.method(), request.uri().path()));
        let access = Arc::clone(&self.access);
        let bearer = respond::blocking(move || Ok(access.judge(&shown, needs)?)).await?;
        peer.known.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(Caller::known_as(&bearer.name));
        Ok((request, Some(bearer.id)))
    }

    /// Lets in whoever brings a resume token for just this. What else the request says is looked at by nobody before.
    async fn admit_by_token(
        &self,
        peer: &Peer,
        request: Request,
        way: TokenUse,
    ) -> Result<Request, ApiError> {
        #[derive(Deserialize)]
        struct WithToken {
            token: Option<String>,
        }
        let (mut head, body) = request.into_parts();
        let body = tokio::time::timeout(BODY_TIME, to_bytes(body, MOST_UNKNOWN)).await;
        let body =
            body.map_err(|_| ApiError::new(Code::TooSlow, "the request body did not arrive in time"))?;
        let body = body.map_err(|_| {
            let message =
                format!("without an access token a request body may have at most {} KiB", MOST_UNKNOWN >> 10);
            ApiError::new(Code::TooLarge, message)
        })?;
        let shown: Option<WithToken> = serde_json::from_slice(&body).ok();
        let token = shown.and_then(|shown| shown.token).ok_or_else(missing)?;
        let network = Network::of(peer.remote.ip());
        // Many share an address behind a proxy: one that has failed too often still gets one look at a time, so that guessing keeps
        // nobody out for good, and nobody of another address waiting.
        let _turn = match self.failures.refused_for(network) {
            None => self
                .unknown
                .acquire()
                .await
                .map_err(|_| ApiError::internal("access tokens cannot be checked"))?,
            Some(time) => self.suspects.try_acquire().map_err(|_| too_many_failures(time))?,
        };
        let daemon = Arc::clone(&self.daemon);
        let let_in = respond::blocking(move || Ok(daemon.let_in_by_token(&token, way)?)).await;
        let id = let_in.map_err(|error| {
            let is_guess = error.code() == Code::TokenUnknown.as_str();
            let refused = if is_guess { self.failures.count(network) } else { None };
            refused.map_or(error, too_many_failures)
        })?;
        head.extensions.insert(Caller::known_as(&id.to_string()));
        Ok(Request::from_parts(head, Body::from(body)))
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
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let Some(peer) = request.extensions().get::<Peer>().cloned() else {
        return ApiError::internal("a request has no peer").into_response();
    };
    let (method, path) = (request.method().clone(), request.extensions().get::<MatchedPath>().cloned());
    match guard.admit(&peer, request).await {
        Ok((request, None)) => next.run(request).await,
        Ok((request, Some(token))) => end_with_token(next.run(request).await, guard.access, token),
        Err(error) => {
            guard.log(&peer, &method, path.as_ref(), &error);
            refuse(error)
        }
    }
}

/// Tells whether a request needs no token at all: whether anyone listens, which whoever asks knows by now, and the page for
/// people, which is the same for everybody.
pub(crate) fn is_open_to_all(method: &Method, path: &str) -> bool {
    path == HEALTH || path == ANSWER_PAGE && matches!(*method, Method::GET | Method::HEAD)
}

/// Returns what a request is about that needs no access token if it brings a resume token.
fn by_token(method: &Method, path: &str) -> Option<TokenUse> {
    if *method != Method::POST {
        return None;
    }
    let id = |before: &str, behind: &str| path.strip_prefix(before)?.strip_suffix(behind);
    let wait = id("/api/waits/", "/answer").or_else(|| id("/api/waits/", "/view"));
    let wait = wait.and_then(|id| id.parse().ok()).map(TokenUse::Wait);
    wait.or_else(|| id("/api/sessions/", "/resume")?.parse().ok().map(TokenUse::Session))
}

/// Says that nothing was shown.
fn missing() -> ApiError {
    ApiError::new(Code::TokenMissing, "an access token is needed").hint(
        "send Authorization: Bearer TOKEN, or give commands --token-file FILE; on the daemon's machine, rekindle token create makes one",
    )
}

/// Says that too many wrong tokens came from where a request comes from.
fn too_many_failures(time: Duration) -> ApiError {
    ApiError::new(Code::TooManyFailures, "too many wrong tokens came from this address")
        .hint("try again later; the header Retry-After says when")
        .retry_after(time)
}

/// Returns what a token must be allowed for a request. Whoever may answer a wait may also make a token or a link that does.
pub(crate) fn needed(method: &Method, path: &str) -> Scope {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Scope::Read;
    }
    let ways = ["/answer", "/token", "/links", "/view"];
    let answers = path.starts_with("/api/waits/") && ways.iter().any(|way| path.ends_with(way));
    if *method == Method::POST && answers { Scope::Answer } else { Scope::Admin }
}

/// Returns the token that a request shows.
fn bearer(headers: &HeaderMap) -> Result<PresentedToken, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or_else(missing)?;
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let bearer = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, token) = bearer.filter(|_| values.next().is_none()).ok_or_else(missing)?;
    let unknown = |denial: rekindle_domain::access::Denial| {
        ApiError::new(Code::TokenUnknown, denial).advise(Hint::CreateToken { scope: None })
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
fn end_with_token(response: Response, access: Arc<Access>, id: AccessId) -> Response {
    let stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !stream {
        return response;
    }
    let ended = async move {
        let mut changed = access.listen();
        while access.is_good(id) && changed.changed().await.is_ok() {}
        tracing::info!(token = %id, "a stream ends: its token is no longer valid");
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
            (Method::POST, "/api/waits/wait_1/links", Scope::Answer),
            (Method::POST, "/api/waits/wait_1/view", Scope::Answer),
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
    fn health_and_the_page_need_no_token_and_nothing_else_does() {
        for (method, path, open) in [
            (Method::GET, "/healthz", true),
            (Method::GET, "/answer", true),
            (Method::HEAD, "/answer", true),
            (Method::POST, "/answer", false),
            (Method::GET, "/answer/", false),
            (Method::GET, "/", false),
            (Method::GET, "/readyz", false),
            (Method::GET, "/api/waits/wait_1/answer", false),
            (Method::POST, "/api/waits/wait_1/view", false),
        ] {
            assert_eq!(is_open_to_all(&method, path), open, "{method} {path}");
        }
    }

    #[test]
    fn a_resume_token_opens_three_ways_and_no_other() {
        let wait = TokenUse::Wait("wait_1".parse().expect("an id"));
        let session = TokenUse::Session("sess_1".parse().expect("an id"));
        for (method, path, way) in [
            (Method::POST, "/api/waits/wait_1/answer", Some(wait)),
            (Method::POST, "/api/waits/wait_1/view", Some(wait)),
            (Method::POST, "/api/sessions/sess_1/resume", Some(session)),
            (Method::GET, "/api/waits/wait_1/view", None),
            (Method::POST, "/api/waits/wait_1/links", None),
            (Method::GET, "/api/waits/wait_1/answer", None),
            (Method::POST, "/api/waits/wait_1/token", None),
            (Method::POST, "/api/waits/wait_1/x/answer", None),
            (Method::POST, "/api/sessions/sess_1/messages", None),
            (Method::POST, "/api/sessions/sess_1/cancel", None),
            (Method::POST, "/api/waits//answer", None),
        ] {
            assert_eq!(by_token(&method, path), way, "{method} {path}");
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
            bearer(&headers).map(|shown| shown.id.to_string()).map_err(|error| error.code())
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
