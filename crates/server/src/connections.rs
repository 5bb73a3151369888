//! Connections: how many there may be, how long each may take to say what it wants, and how they end.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::stop::Stopped;

/// Connections that are served: a hundred pages with ten streams each, and some descriptors left for agents.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// Further ones, that are told so; still more are not accepted.
const SPARE: usize = 64;

/// How long the head of a request may take, and how long a connection may rest between two.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long answers under way may take when serving ends.
const GRACE: Duration = Duration::from_secs(2);

/// The connections there are.
pub(crate) struct Connections {
    router: Router,
    stopped: Stopped,
    tasks: JoinSet<()>,
}

impl Connections {
    /// Makes an empty set whose requests `router` answers.
    pub(crate) fn new(router: Router, stopped: Stopped) -> Connections {
        Connections { router, stopped, tasks: JoinSet::new() }
    }

    /// Tells whether another one may be accepted.
    pub(crate) fn have_room(&self) -> bool {
        self.tasks.len() < MAX_CONNECTIONS + SPARE
    }

    /// Serves another one, or tells it that there are too many.
    pub(crate) fn add(&mut self, stream: UnixStream) {
        let served = self.tasks.len() < MAX_CONNECTIONS;
        let (router, stopped) = (self.router.clone(), self.stopped.clone());
        if served {
            self.tasks.spawn(serve(stream, router, stopped));
        } else {
            tracing::warn!(connections = self.tasks.len(), "too many connections");
            self.tasks.spawn(refuse(stream));
        }
    }

    /// Waits until one has ended; forever if there is none.
    pub(crate) async fn ended(&mut self) {
        match self.tasks.join_next().await {
            None => pending().await,
            // A handler's panic is an answer; this one was in the middle of a stream, and only its connection is lost.
            Some(Err(error)) => tracing::error!(%error, "a connection ended in a bug of the daemon"),
            Some(Ok(())) => {}
        }
    }

    /// Waits for all of them, which have heard that serving ends; those that take too long are cut.
    pub(crate) async fn finish(mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "connections are cut");
            self.tasks.shutdown().await;
        }
    }
}

fn protocol() -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    protocol
}

async fn serve(stream: UnixStream, router: Router, mut stopped: Stopped) {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(protocol().serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopped.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Callers come and go; that one went in the middle is worth a line only to who looks for it.
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}

async fn refuse(stream: UnixStream) {
    let service = service_fn(|_| async {
        let message = format!("there are more than {MAX_CONNECTIONS} connections");
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", message);
        Ok::<_, Infallible>(error.hint("close some, or try again later").into_response())
    });
    let connection = protocol().keep_alive(false).serve_connection(TokioIo::new(stream), service);
    let _ = timeout(GRACE, connection).await;
}
