//! Serving: connections are accepted until someone says that it is over, then everything ends in good order.

use std::sync::Arc;
use std::time::Duration;

use rekindle_service::daemon::Daemon;
use tokio::net::UnixListener;
use tokio::time::sleep;

use crate::connections::Connections;
use crate::router::{App, router};
use crate::stop::{Ending, Stop};

/// How long to rest when a connection cannot be accepted: descriptors come back when others end.
const REST: Duration = Duration::from_millis(100);

/// Serves a daemon on a socket until `shutdown` is ready or a caller asks for the end, and says which.
///
/// Then nobody is accepted any more, streams end, and answers under way have two seconds. The daemon is left as it
/// is, and so is the socket's file: both belong to the caller, who calls `Daemon::leave` next. Needs a runtime with
/// I/O and time; work that blocks goes to its blocking threads and may outlive this call, so the caller ends the
/// runtime with a time limit.
pub async fn serve(
    daemon: Arc<Daemon>,
    listener: UnixListener,
    shutdown: impl Future<Output = ()>,
) -> Ending {
    let stop = Stop::new();
    let mut stopped = stop.listen();
    let mut connections = Connections::new(router(App { daemon, stop: stop.clone() }), stop.listen());
    let mut shutdown = std::pin::pin!(shutdown);
    let ending = loop {
        tokio::select! {
            ending = stopped.wait() => break ending,
            () = shutdown.as_mut() => break Ending::Told,
            () = connections.ended() => {}
            accepted = listener.accept(), if connections.have_room() => match accepted {
                Ok((stream, _)) => connections.add(stream),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(REST).await;
                }
            },
        }
    };
    // Whoever comes now is refused by the system, rather than left waiting.
    drop(listener);
    tracing::info!(?ending, "serving ends");
    stop.now(ending);
    connections.finish().await;
    ending
}
