//! Serving: connections are accepted until someone says that it is over, then everything ends in good order.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::middleware;
use rekindle_service::access::Access;
use rekindle_service::daemon::Daemon;
use rekindle_service::error::chain;
use rekindle_service::is_out_of_descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::time::sleep;

use crate::app::App;
use crate::connections::Connections;
use crate::guard::{Guard, REFRESH, guard};
use crate::rate_limit::RateLimit;
use crate::reserved_descriptors::ReservedDescriptors;
use crate::router::router;
use crate::routes::search::searchers;
use crate::sse::all_sessions::lookers;
use crate::stop::{Ending, Stop};
use crate::tls::Tls;
use crate::turns::Turns;

/// How long to rest when a connection cannot be accepted: descriptors come back when others end.
const REST: Duration = Duration::from_millis(100);

/// Failures to accept a connection that are written down in a minute.
const LOGGED: u32 = 6;

/// After how many looks at the list of tokens it is written down when they were used: ten seconds.
const KEEP_USED: u32 = 40;

/// The listeners that are served: the ways in.
#[derive(Debug)]
pub struct Listeners {
    /// Our own socket: whoever may open it is let in.
    pub unix: UnixListener,
    /// From elsewhere: with an access token only.
    pub tcp: TcpListeners,
}

/// The TCP listeners: the way in from elsewhere.
#[derive(Debug, Default)]
pub struct TcpListeners {
    /// Where callers come to.
    pub listeners: Vec<TcpListener>,
    /// What we are called beside our addresses, in lower case.
    pub names: Vec<String>,
    /// What we are known by; without it everything is said in the clear.
    pub tls: Option<Tls>,
}

impl TcpListeners {
    async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|context| {
            let mut waiting = self.listeners.iter();
            let accepted = waiting.find_map(|listener| match listener.poll_accept(context) {
                Poll::Ready(accepted) => Some(accepted),
                Poll::Pending => None,
            });
            accepted.map_or(Poll::Pending, |accepted| Poll::Ready(accepted.map(|(stream, _)| stream)))
        })
        .await
    }
}

/// Serves a daemon on a socket, and from elsewhere if that is wanted, until `shutdown` is ready or a caller asks for the
/// end, and says which.
///
/// Then nobody is accepted any more, streams end, and answers under way have two seconds. The daemon is left as it
/// is, and so is the socket's file: both belong to the caller, who calls `Daemon::leave` next. Needs a runtime with
/// I/O and time; work that blocks goes to its blocking threads and may outlive this call, so the caller ends the
/// runtime with a time limit.
pub async fn serve(daemon: Arc<Daemon>, listeners: Listeners, shutdown: impl Future<Output = ()>) -> Ending {
    let Listeners { unix, tcp } = listeners;
    let stop = Stop::new();
    let mut stopped = stop.listen();
    let access = Arc::clone(daemon.access());
    let guard_of = Guard::new(Arc::clone(&daemon), &tcp.names, tcp.tls.is_some());
    let (lookers, searchers) = (lookers(), searchers());
    let app = App { daemon, stop: stop.clone(), turns: Turns::default(), lookers, searchers };
    let router = router(app);
    let guarded = router.clone().layer(middleware::from_fn_with_state(guard_of, guard));
    let mut connections = Connections::new(router);
    let mut strangers = Connections::new(guarded);
    let watching = (!tcp.listeners.is_empty()).then(|| tokio::spawn(watch(access)));
    let (refused, mut reserved) = (RateLimit::new(LOGGED), ReservedDescriptors::default());
    reserved.fill();
    let mut shutdown = std::pin::pin!(shutdown);
    let ending = loop {
        tokio::select! {
            ending = stopped.wait() => break ending,
            () = shutdown.as_mut() => break Ending::Told,
            () = connections.ended() => reserved.fill(),
            () = strangers.ended() => reserved.fill(),
            accepted = unix.accept(), if connections.have_room() => match accepted {
                Ok((stream, _)) => connections.add(stream),
                Err(error) if has_caller([unix.as_fd()]) => handle_accept_error(&error, &refused, &mut reserved, &mut connections, &mut strangers).await,
                Err(_) => rest(&mut connections, &mut strangers).await,
            },
            accepted = tcp.accept(), if strangers.have_room() => match accepted {
                Ok(stream) => strangers.add_stranger(stream, tcp.tls.as_ref()),
                Err(error) if has_caller(tcp.listeners.iter().map(AsFd::as_fd)) => handle_accept_error(&error, &refused, &mut reserved, &mut connections, &mut strangers).await,
                Err(_) => rest(&mut connections, &mut strangers).await,
            },
        }
    };
    // Whoever comes now is refused by the system, rather than left waiting.
    drop((unix, tcp));
    tracing::info!(?ending, "serving ends");
    stop.now(ending);
    tokio::join!(connections.finish(), strangers.finish());
    if let Some(watching) = watching {
        watching.abort();
    }
    ending
}

/// Tells whether a caller waits at one of these listeners: without a free descriptor an accept fails even if nobody came.
fn has_caller<'a>(listeners: impl IntoIterator<Item = BorrowedFd<'a>>) -> bool {
    let waiting = |listener| PollFd::from_borrowed_fd(listener, PollFlags::IN);
    let mut listeners: Vec<PollFd<'_>> = listeners.into_iter().map(waiting).collect();
    poll(&mut listeners, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Makes room for a connection that could not be accepted. One that was kept back is given up for it; when there is none
/// left, the oldest connection of the way in that has more of them makes way: else those who only listen would keep out
/// whoever wants to know, or to end, what goes on.
async fn handle_accept_error(
    error: &io::Error,
    refused: &RateLimit,
    reserved: &mut ReservedDescriptors,
    ours: &mut Connections,
    elsewhere: &mut Connections,
) {
    if is_out_of_descriptors(error) {
        if reserved.release() {
            return;
        }
        if elsewhere.count() > ours.count() { elsewhere.close_oldest() } else { ours.close_oldest() }
    }
    if let Some(more) = refused.take() {
        tracing::warn!(error = chain(error), more, "cannot accept a connection");
    }
    rest(ours, elsewhere).await;
}

/// Waits for a while, or until a connection has ended.
async fn rest(ours: &mut Connections, elsewhere: &mut Connections) {
    tokio::select! {
        () = ours.ended() => {}
        () = elsewhere.ended() => {}
        () = sleep(REST) => {}
    }
}

/// Looks at the list of tokens for those whose streams are open, and keeps when tokens were used.
async fn watch(access: Arc<Access>) {
    for turn in 1_u32.. {
        sleep(REFRESH).await;
        let access = Arc::clone(&access);
        let looked = tokio::task::spawn_blocking(move || {
            access.refresh();
            if turn.is_multiple_of(KEEP_USED) {
                access.keep_used();
            }
        });
        let _ = looked.await;
    }
}
