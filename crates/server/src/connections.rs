//! Connections: how many there may be, how long each may take to say what it wants, and how they end. Each way in has a
//! share of its own, so that callers from elsewhere cannot keep those on our own machine out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rekindle_service::error::chain;
use rekindle_wire::code::Code;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::error::ApiError;
use crate::guard::Peer;
use crate::stop::{CloseSignal, Closer};
use crate::tls::Tls;

/// Connections of one way in that are served: a hundred pages with ten streams each, and some descriptors left for agents.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// Further ones, that are told so; still more are not accepted.
const SPARE: usize = 64;

/// Connections from elsewhere that have not shown a good token yet: a caller shows its own within milliseconds, and who only
/// keeps a connection open makes way for who comes.
const MAX_STRANGERS: usize = 256;

/// How long answers under way may take when serving ends.
const GRACE: Duration = Duration::from_secs(2);

/// How long TLS may take to be agreed upon: some round trips.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// After this long a peer that takes nothing of what it is sent is gone: a network that was cut says nothing.
const UNHEARD_MILLIS: u32 = 60_000;

/// What a connection may cost before it says what it wants.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// How long the head of a request may take, and how long a connection may rest between two.
    head_time: Duration,
    /// How large a head may be.
    head_size: usize,
}

/// On our own socket: whoever asks is the owner of the home.
const OURS: Limits = Limits { head_time: Duration::from_secs(30), head_size: 400 << 10 };

/// From elsewhere: a head is some hundred bytes, and comes at once.
const ELSEWHERE: Limits = Limits { head_time: Duration::from_secs(10), head_size: 32 << 10 };

/// The connections of one way in.
pub(crate) struct Connections {
    router: Router,
    tasks: JoinSet<()>,
    /// Those who have not said who they are, the oldest first.
    strangers: VecDeque<Stranger>,
    /// Those that are served, the oldest first, among some that have ended.
    open: VecDeque<Closer>,
}

struct Stranger {
    known: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Connections {
    /// Makes an empty set whose requests `router` answers.
    pub(crate) fn new(router: Router) -> Connections {
        Connections { router, tasks: JoinSet::new(), strangers: VecDeque::new(), open: VecDeque::new() }
    }

    /// Tells whether another one may be accepted.
    pub(crate) fn have_room(&self) -> bool {
        self.tasks.len() < MAX_CONNECTIONS + MAX_STRANGERS + SPARE
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Closes the oldest that had an answer, in good order, so that the next one can be accepted: a stream goes on where it
    /// ended when its follower comes again, and an answer that is under way is given.
    pub(crate) fn close_oldest(&mut self) {
        self.open.retain(|one| !one.is_over());
        let oldest = self.open.iter().position(Closer::is_answered);
        if let Some(oldest) = oldest.and_then(|oldest| self.open.remove(oldest)) {
            oldest.close();
        }
    }

    /// Returns what the next connection waits with for its end.
    fn signal(&mut self) -> CloseSignal {
        if self.open.len() > 2 * self.tasks.len() + 16 {
            self.open.retain(|one| !one.is_over());
        }
        let (closer, signal) = Closer::new();
        self.open.push_back(closer);
        signal
    }

    /// Serves another one on our own socket, or tells it that there are too many.
    pub(crate) fn add(&mut self, stream: UnixStream) {
        if self.tasks.len() < MAX_CONNECTIONS {
            let (inner, signal) = (TowerToHyperService::new(self.router.clone()), self.signal());
            self.tasks.spawn(serve(stream, inner, OURS, signal));
        } else {
            self.refuse(stream);
        }
    }

    /// Serves another one from elsewhere. It makes way for later ones until it has shown who it is.
    pub(crate) fn add_stranger(&mut self, stream: TcpStream, tls: Option<&Tls>) {
        let (Ok(remote), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
        // Neither is vital: without them a word comes later, and a lost peer is noticed later.
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNHEARD_MILLIS);
        self.strangers.retain(|one| !one.known.load(Ordering::Relaxed) && !one.task.is_finished());
        if self.tasks.len() - self.strangers.len() >= MAX_CONNECTIONS {
            return self.refuse(stream);
        }
        if self.strangers.len() >= MAX_STRANGERS
            && let Some(oldest) = self.strangers.pop_front()
        {
            tracing::debug!("an idle connection is closed to make room");
            oldest.task.abort();
        }
        let peer = Peer { remote, local, known: Arc::default() };
        let (known, tls) = (Arc::clone(&peer.known), tls.cloned());
        let signal = self.signal();
        let task = self.tasks.spawn(serve_stranger(stream, tls, self.router.clone(), peer, signal));
        self.strangers.push_back(Stranger { known, task });
    }

    fn refuse(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        tracing::warn!(connections = self.tasks.len(), "too many connections");
        let message = format!("there are more than {MAX_CONNECTIONS} connections");
        let error = ApiError::new(Code::TooManyConnections, message);
        self.tasks.spawn(answer(stream, error.hint("close some, or try again later")));
    }

    /// Waits until one has ended; forever if there is none.
    pub(crate) async fn ended(&mut self) {
        // It ended by itself, or because it was cut: a panic would have ended the process.
        if self.tasks.join_next().await.is_none() {
            pending().await
        }
    }

    /// Closes all of them and waits; those that take too long are cut.
    pub(crate) async fn finish(mut self) {
        for one in self.open.drain(..) {
            one.close();
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "connections are cut");
            self.tasks.shutdown().await;
        }
    }
}

fn protocol(limits: Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(limits.head_size);
    protocol
}

async fn serve<S>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: S,
    limits: Limits,
    mut signal: CloseSignal,
) where
    S: Service<
            hyper::Request<hyper::body::Incoming>,
            Response = axum::response::Response,
            Error = Infallible,
        >,
{
    let own = signal.closing.clone();
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(own.clone());
        let answer = service.call(request);
        async {
            let answer = answer.await;
            own.answered();
            answer
        }
    });
    let mut connection = pin!(protocol(limits).serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        biased;
        result = connection.as_mut() => result,
        () = signal.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Callers come and go; that one went in the middle is worth a line only to who looks for it.
    if let Err(error) = result {
        tracing::debug!(error = chain(&error), "a connection broke");
    }
}

async fn serve_stranger(
    stream: TcpStream,
    tls: Option<Tls>,
    router: Router,
    peer: Peer,
    signal: CloseSignal,
) {
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer.clone());
        inner.call(request)
    });
    let Some(tls) = tls else { return serve(stream, service, ELSEWHERE, signal).await };
    let shaken = async {
        let mut first = [0];
        // Every TLS connection begins with this byte, and no HTTP request does.
        if stream.peek(&mut first).await? > 0 && first[0].is_ascii_alphabetic() {
            let error = ApiError::new(Code::TlsExpected, "this port speaks TLS").hint("use https://");
            answer(stream, error).await;
            return Ok(None);
        }
        TlsAcceptor::from(tls.0).accept(stream).await.map(Some)
    };
    match timeout(HANDSHAKE, shaken).await {
        Ok(Ok(Some(stream))) => serve(stream, service, ELSEWHERE, signal).await,
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(error = chain(&error), "the TLS handshake failed"),
        Err(_) => tracing::debug!("the TLS handshake took too long"),
    }
}

/// Answers one request with an error, whatever it asks for.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, error: ApiError) {
    let service = service_fn(|_| {
        let response = error.clone().into_response();
        async { Ok::<_, Infallible>(response) }
    });
    let connection = protocol(ELSEWHERE).keep_alive(false).serve_connection(TokioIo::new(stream), service);
    let _ = timeout(GRACE, connection).await;
}
