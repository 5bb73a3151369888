//! Errors of requests: why there is no answer from a daemon, told apart by whether the request may have arrived; and the
//! connection it would come by.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

/// An error of a request: why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody listens: nothing was asked.
    #[error("no daemon answers at {path}")]
    Unreachable {
        /// The socket, or the server.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Whoever answers does not prove to be the one that is meant: nothing was asked.
    #[error("the server at {path} cannot be trusted")]
    Untrusted {
        /// The server.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Whoever answers serves another home than the one that is meant: nothing was asked.
    #[error("the daemon at {path} serves another home: {home}")]
    AnotherHome {
        /// The socket.
        path: String,
        /// The home it serves.
        home: String,
    },
    /// The connection broke; what was asked may have been done.
    #[error("the daemon went away before it answered")]
    ConnectionLost(#[source] hyper::Error),
    /// It takes too long; what was asked may still be done.
    #[error("the daemon does not answer")]
    TimedOut,
    /// Our own request cannot be written.
    #[error("the request cannot be made")]
    Malformed(#[source] hyper::http::Error),
}

impl RequestError {
    /// Tells whether another attempt may succeed.
    pub(super) fn is_transient(&self) -> bool {
        use RequestError::{ConnectionLost, TimedOut, Unreachable};
        matches!(self, Unreachable { .. } | ConnectionLost(_) | TimedOut)
    }
}

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
