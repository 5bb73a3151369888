//! What handlers share: the daemon, asked where it may block, and the server's end.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rekindle_domain::id::SessionId;
use rekindle_service::daemon::Daemon;
use rekindle_wire::code::Code;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::respond;
use crate::stop::Stop;
use crate::turns::Turns;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) stop: Stop,
    pub(crate) turns: Turns,
    /// Held by whoever looks at sessions for a follower of all.
    pub(crate) lookers: Arc<Semaphore>,
    /// Held by whoever searches: a search reads much and may take a processor.
    pub(crate) searchers: Arc<Semaphore>,
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

    /// Asks the daemon about one session, where it may block: not many at the same time, so that one whose log hangs takes only
    /// some of the threads there are.
    pub(crate) async fn ask_about<T: Send + 'static>(
        &self,
        session: SessionId,
        work: impl FnOnce(&Arc<Daemon>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = self.turns.of(session).await;
        self.ask(move |daemon| {
            // Until it is done, also if whoever asked has gone away.
            let _turn = turn;
            work(daemon)
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
    ApiError::new(Code::NotReady, format_args!("the daemon cannot list its sessions: {why}"))
        .hint("it tries again every second; rekindle doctor says more")
}
