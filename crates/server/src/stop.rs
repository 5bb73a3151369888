//! The end of serving: one word, said once. And the end of one connection, which makes way for others or ends with all.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::{oneshot, watch};

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The future that was given to `serve` came to its end.
    Told,
    /// A caller asked for it.
    Asked {
        /// Agents that were to end and did not; none if agents were to be left alone.
        agents_left: Option<usize>,
    },
}

/// Whoever may end it.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Sender<Option<Ending>>);

/// Whoever waits for the end.
#[derive(Debug, Clone)]
pub(crate) struct Stopped(watch::Receiver<Option<Ending>>);

impl Stop {
    /// Makes one that nobody has ended yet.
    pub(crate) fn new() -> Stop {
        Stop(watch::Sender::new(None))
    }

    /// Ends it; the first reason stays.
    pub(crate) fn now(&self, ending: Ending) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(ending);
            first
        });
    }

    /// Returns something to wait with.
    pub(crate) fn listen(&self) -> Stopped {
        Stopped(self.0.subscribe())
    }
}

impl Stopped {
    /// Waits for the end, also when it has come already.
    pub(crate) async fn wait(&mut self) -> Ending {
        let ending = self.0.wait_for(Option::is_some).await.ok().and_then(|ending| *ending);
        // Without anyone who could say it, it has ended.
        ending.unwrap_or(Ending::Told)
    }
}

/// Closes one connection in good order: at once if it rests, else behind the answer that is under way; a stream of events ends.
#[derive(Debug)]
pub(crate) struct Closer {
    close: oneshot::Sender<()>,
    closing: Closing,
}

/// The end of a connection, for the connection itself: it is woken.
#[derive(Debug)]
pub(crate) struct CloseSignal {
    closed: oneshot::Receiver<()>,
    pub(crate) closing: Closing,
}

/// The end of a connection, for what is answered on it. It is polled whenever the connection is, so it only looks: a stream with a
/// thousand followers would pay for every waker of theirs at each event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing(Arc<Progress>);

/// How far a connection has come.
#[derive(Debug, Default)]
struct Progress {
    answered: AtomicBool,
    closing: AtomicBool,
}

impl Closer {
    /// Makes one, and what its connection waits with.
    pub(crate) fn new() -> (Closer, CloseSignal) {
        let ((close, closed), closing) = (oneshot::channel(), Closing::default());
        (Closer { close, closing: closing.clone() }, CloseSignal { closed, closing })
    }

    /// Closes the connection; tells whether there still was one.
    pub(crate) fn close(self) -> bool {
        // Before the connection is woken: its streams look then.
        self.closing.0.closing.store(true, Ordering::Release);
        self.close.send(()).is_ok()
    }

    /// Tells whether its first request was answered, be it by a stream that goes on.
    pub(crate) fn is_answered(&self) -> bool {
        self.closing.0.answered.load(Ordering::Relaxed)
    }

    /// Tells whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.close.is_closed()
    }
}

impl CloseSignal {
    /// Waits for the end, also when it has come already.
    pub(crate) async fn wait(&mut self) {
        // A closer that went without a word closes nothing.
        if (&mut self.closed).await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Closing {
    /// Notes that a request was answered.
    pub(crate) fn answered(&self) {
        self.0.answered.store(true, Ordering::Relaxed);
    }

    /// Tells whether the connection is to end.
    pub(crate) fn has_begun(&self) -> bool {
        self.0.closing.load(Ordering::Acquire)
    }

    /// Waits for the end, on a task that is woken by it: that of the connection.
    pub(crate) async fn wait(&self) {
        poll_fn(|_| if self.has_begun() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// Every request carries the end of its connection.
impl<S: Send + Sync> FromRequestParts<S> for Closing {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Closing, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_its_closer_says_so() {
        let ends = async |signal: &mut CloseSignal| {
            tokio::time::timeout(std::time::Duration::from_secs(1), signal.wait()).await.is_ok()
        };
        let (one, mut first) = Closer::new();
        let (two, mut second) = Closer::new();
        let stream = first.closing.clone();
        assert!(!ends(&mut first).await);
        assert!(!one.is_over() && !stream.has_begun());
        assert!(one.close());
        assert!(ends(&mut first).await && stream.has_begun());
        stream.wait().await;
        assert!(!ends(&mut second).await, "it was not meant");
        drop(two);
        assert!(!ends(&mut second).await, "nobody can close it any more");
        let (three, third) = Closer::new();
        drop(third);
        assert!(three.is_over());
        assert!(!three.close());
    }

    #[tokio::test]
    async fn the_first_reason_stays_and_latecomers_hear_it() {
        let stop = Stop::new();
        let mut early = stop.listen();
        stop.now(Ending::Asked { agents_left: Some(2) });
        stop.now(Ending::Told);
        assert_eq!(early.wait().await, Ending::Asked { agents_left: Some(2) });
        assert_eq!(stop.listen().wait().await, Ending::Asked { agents_left: Some(2) });
    }
}
