//! What handlers share: the daemon, asked where it may block, and the server's end.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rekindle_service::daemon::Daemon;
use rekindle_wire::code::Code;

use crate::error::ApiError;
use crate::respond;
use crate::stop::Stop;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) stop: Stop,
}

impl FromRequestParts<App> for App {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, app: &App) -> Result<App, Infallible> {
        Ok(app.clone())
    }
}

impl App {
    /// Asks the daemon for something that it knows once its sessions are listed, where it may block.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Daemon>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.ask_at_once(move |daemon| match daemon.unlisted() {
            Some(why) => Err(unlisted(&why)),
            None => work(daemon),
        })
        .await
    }

    /// Asks the daemon for something that it always knows, where it may block.
    pub(crate) async fn ask_at_once<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Daemon>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let daemon = Arc::clone(&self.daemon);
        respond::blocking(move || work(&daemon)).await
    }
}

fn unlisted(why: &str) -> ApiError {
    ApiError::new(Code::NotReady, format_args!("the sessions cannot be listed: {why}"))
        .hint("it is tried again every second; rekindle doctor says more")
}
