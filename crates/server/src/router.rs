//! Which path is answered by whom, and what is answered to the others.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Router, middleware};
use rekindle_service::daemon::Daemon;

use crate::around::{Count, around};
use crate::error::ApiError;
use crate::extract::MAX_BODY;
use crate::respond;
use crate::routes::{daemon, sessions, waits};
use crate::sse::{everything, session};
use crate::stop::Stop;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) stop: Stop,
}

impl App {
    /// Asks the daemon, where it may block.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Daemon>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let daemon = Arc::clone(&self.daemon);
        respond::blocking(move || work(&daemon)).await
    }
}

/// Puts all paths together.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/healthz", get(daemon::alive))
        .route("/readyz", get(daemon::ready))
        .route("/metrics", get(daemon::metrics))
        .route("/api/version", get(daemon::version))
        .route("/api/agents", get(daemon::agents))
        .route("/api/holders", get(daemon::holders))
        .route("/api/shutdown", post(daemon::shutdown))
        .route("/api/events", get(everything::follow))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route("/api/sessions/{id}", get(sessions::show).patch(sessions::change).delete(sessions::delete))
        .route("/api/sessions/{id}/messages", post(sessions::message))
        .route("/api/sessions/{id}/cancel", post(sessions::cancel))
        .route("/api/sessions/{id}/resume", post(sessions::resume))
        .route("/api/sessions/{id}/close", post(sessions::close))
        .route("/api/sessions/{id}/log", get(sessions::log))
        .route("/api/sessions/{id}/status", get(sessions::status))
        .route("/api/sessions/{id}/events", get(session::follow))
        .route("/api/waits", get(waits::list))
        .route("/api/waits/{id}/token", post(waits::mint))
        .route("/api/waits/{id}/answer", post(waits::answer))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(count(&app), around))
        .with_state(app)
}

/// Has the daemon count what was answered.
fn count(app: &App) -> Count {
    let daemon = Arc::clone(&app.daemon);
    Arc::new(move |method, route, status, took| daemon.answered(method, route, status, took))
}

async fn no_such_path(uri: Uri) -> ApiError {
    // A path may be as long as a request's head.
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", format_args!("there is nothing at {path}"))
        .hint("see docs/http-api.md for what there is")
}

async fn no_such_method(method: Method) -> ApiError {
    let message = format!("this path does not take {method}");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", message)
        .hint("the header Allow says what it takes")
}
