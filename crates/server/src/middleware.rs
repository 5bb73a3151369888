//! The middleware around every request: it is noted which session it is for, an error the framework wrote becomes one of ours, and
//! the log gets one line. Bodies, headers and raw paths are never logged: they may hold secrets.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ALLOW, CONNECTION};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rekindle_domain::id::SessionId;
use rekindle_service::daemon::Daemon;
use rekindle_service::{AtWork, session_span};
use tracing::Span;
use tracing::level_filters::LevelFilter;

use crate::caller::Caller;
use crate::error::{ApiError, Noted};
use crate::openapi;

/// What hears of requests: the daemon, and in tests nobody.
pub(crate) trait Requests: Clone + Send + Sync + 'static {
    /// A guard for as long as a thread works on a session's request.
    type AtWork;
    /// Notes that this thread works on a request that is for a session.
    fn at_request(&self, session: SessionId) -> Option<Self::AtWork>;
    /// Says that a request for a session is likely to be recorded: what that needs is made ready while the request is read.
    fn expect_append(&self);
    /// Counts an answer: the method, the pattern that the path matched, the status, how long it took.
    fn answered(&self, method: &str, route: Option<&str>, status: u16, took: Duration);
}

impl Requests for Arc<Daemon> {
    type AtWork = AtWork;

    fn at_request(&self, session: SessionId) -> Option<AtWork> {
        Daemon::at_request(self, session)
    }

    fn expect_append(&self) {
        Daemon::expect_append(self);
    }

    fn answered(&self, method: &str, route: Option<&str>, status: u16, took: Duration) {
        Daemon::answered(self, method, route, status, took);
    }
}

/// Answers a request whatever happens, counts it and logs it. While it is handled, it is noted which session it is for: that of a
/// panic is found by it, and the log says it.
pub(crate) async fn observe_request<R: Requests>(
    State(requests): State<R>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let by = request.extensions().get::<Caller>().cloned();
    let session = session_of(request.uri().path());
    if session.is_some() && !method.is_safe() {
        requests.expect_append();
    }
    let span = session.filter(|_| is_debugged()).map_or_else(Span::none, session_span);
    let mut handled = pin!(next.run(request));
    let response = poll_fn(|context| {
        let _at_work = session.and_then(|session| requests.at_request(session));
        let _in_session = span.enter();
        handled.as_mut().poll(context)
    });
    let response = check_declared(&method, path.as_ref(), reshape(response.await));
    let noted = response.extensions().get::<Noted>().cloned();
    let line = Line { method, path, by, status: response.status(), noted, took: begun.elapsed() };
    let route = line.path.as_ref().map(MatchedPath::as_str);
    requests.answered(line.method.as_str(), route, line.status.as_u16(), line.took);
    if line.is_wanted(&span) {
        // Whoever asked does not wait for it: it is written when the answer is.
        tokio::spawn(async move { session.map_or_else(Span::none, session_span).in_scope(|| line.log()) });
    }
    response
}

/// Tells whether somebody may read what is said while a request is handled, beyond what names its session itself. Without that the
/// session's span is not made: it would cost a quarter of what handling a prompt does.
fn is_debugged() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Returns the session that a path is about.
fn session_of(path: &str) -> Option<SessionId> {
    path.strip_prefix("/api/sessions/")?.split('/').next()?.parse().ok()
}

/// Gives an error that the framework wrote the shape of all others.
fn reshape(response: Response) -> Response {
    let status = response.status();
    let refused = status.is_client_error() || status.is_server_error();
    if !refused || response.extensions().get::<Noted>().is_some() {
        return response;
    }
    let mut replaced = ApiError::refused(status).into_response();
    for name in [ALLOW, CONNECTION] {
        if let Some(value) = response.headers().get(&name) {
            replaced.headers_mut().insert(name, value.clone());
        }
    }
    replaced
}

/// While it is tested, a refusal that the interface's description does not have is a bug.
fn check_declared(method: &Method, path: Option<&MatchedPath>, response: Response) -> Response {
    if cfg!(debug_assertions)
        && let Some((path, noted)) = path.zip(response.extensions().get::<Noted>())
        && !openapi::declares(method, path.as_str(), response.status(), noted.code)
    {
        let (path, status, code) = (path.as_str(), response.status().as_u16(), noted.code);
        let message = format!("{method} {path} does not say that it answers {status} {code}");
        return ApiError::internal(message).hint("add it in openapi/describe.rs").into_response();
    }
    response
}

/// What the log says of a request.
struct Line {
    method: Method,
    path: Option<MatchedPath>,
    /// Who asked, if not someone on our own socket.
    by: Option<Caller>,
    status: StatusCode,
    noted: Option<Noted>,
    took: Duration,
}

impl Line {
    /// Tells whether anybody wants to read it.
    fn is_wanted(&self, span: &Span) -> bool {
        self.is_remarkable() || span.in_scope(|| tracing::enabled!(tracing::Level::DEBUG))
    }

    /// Tells whether it is said even if nobody looks for it: it was refused, or what it did is in no session's log.
    fn is_remarkable(&self) -> bool {
        let looks = self.method == Method::GET || self.method == Method::HEAD;
        self.is_broken() || !looks && (!self.status.is_success() || self.method == Method::DELETE)
    }

    /// Tells whether something is wrong with us. 503 is said to callers who come too early or too late, and passes.
    fn is_broken(&self) -> bool {
        self.status.is_server_error() && self.status != StatusCode::SERVICE_UNAVAILABLE
    }

    fn log(&self) {
        let (method, status) = (&self.method, self.status.as_u16());
        let path = self.path.as_ref().map_or("-", MatchedPath::as_str);
        let by = self.by.as_ref().map(Caller::name);
        let code = self.noted.as_ref().map(|noted| noted.code);
        // With its fraction: most requests of a daemon on the same machine take less than one.
        let ms = self.took.as_secs_f64() * 1000.0;
        if self.is_broken() {
            let message = self.noted.as_ref().map(|noted| noted.message.as_str());
            tracing::error!(%method, path, by, status, ms, code, message, "request");
        } else if self.is_remarkable() {
            tracing::info!(%method, path, by, status, ms, code, "request");
        } else {
            tracing::debug!(%method, path, by, status, ms, code, "request");
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::routing::get;
    use axum::{Router, middleware};
    use tower::ServiceExt;

    use super::*;

    #[derive(Clone)]
    struct Nobody;

    impl Requests for Nobody {
        type AtWork = ();
        fn at_request(&self, _: SessionId) -> Option<()> {
            None
        }
        fn expect_append(&self) {}
        fn answered(&self, _: &str, _: Option<&str>, _: u16, _: Duration) {}
    }

    async fn ask(path: &str) -> (Response<()>, serde_json::Value) {
        async fn framework() -> (StatusCode, [(&'static str, &'static str); 1], &'static str) {
            (StatusCode::NOT_ACCEPTABLE, [("allow", "PUT")], "plain words")
        }
        let layer = middleware::from_fn_with_state(Nobody, observe_request::<Nobody>);
        let router = Router::new().route("/framework", get(framework)).layer(layer);
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let (head, body) = router.oneshot(request).await.expect("an answer").into_parts();
        let body = to_bytes(body, 10_000).await.expect("a body");
        (Response::from_parts(head, ()), serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn the_session_of_a_path_is_found() {
        for (path, session) in [
            ("/api/sessions/sess_1", Some("sess_1")),
            ("/api/sessions/sess_1/messages", Some("sess_1")),
            ("/api/sessions", None),
            ("/api/sessions/", None),
            ("/api/sessions/none", None),
            ("/api/waits/wait_1", None),
        ] {
            assert_eq!(session_of(path).as_ref().map(SessionId::as_str), session, "{path}");
        }
    }

    #[test]
    fn what_was_refused_or_is_in_no_log_is_remarkable() {
        for (method, status, remarkable) in [
            (Method::GET, 200, false),
            (Method::GET, 404, false),
            (Method::GET, 500, true),
            (Method::GET, 503, false),
            (Method::POST, 201, false),
            (Method::PATCH, 200, false),
            (Method::POST, 409, true),
            (Method::POST, 503, true),
            (Method::DELETE, 204, true),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let line = Line { method, path: None, by: None, status, noted: None, took: Duration::ZERO };
            assert_eq!(line.is_remarkable(), remarkable, "{} {status}", line.method);
        }
    }

    #[tokio::test]
    async fn an_error_of_the_framework_gets_our_shape_and_keeps_its_status() {
        let (head, body) = ask("/framework").await;
        assert_eq!(head.status(), StatusCode::NOT_ACCEPTABLE);
        assert_eq!(head.headers()["content-type"], "application/json");
        assert_eq!(head.headers()["allow"], "PUT");
        assert_eq!(body["error"]["code"], "refused");
        // A path that nobody serves is the framework's error too, without a fallback of ours.
        assert_eq!(ask("/nowhere").await.1["error"]["message"], "Not Found");
    }
}
