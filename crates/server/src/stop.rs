//! The end of serving: one word, said once, that the accepting loop, every connection and every stream hear. And the end of
//! one connection, which makes way for others.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::watch;

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
    close: watch::Sender<bool>,
    answered: Arc<AtomicBool>,
}

/// Whoever waits for the end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    /// None for a request that came without a connection.
    both: Option<(Stopped, watch::Receiver<bool>)>,
    answered: Arc<AtomicBool>,
}

impl Closer {
    /// Makes one, and what its connection waits with. That ends with all serving, too.
    pub(crate) fn new(stopped: Stopped) -> (Closer, Closing) {
        let (close, own) = watch::channel(false);
        let answered = Arc::<AtomicBool>::default();
        (Closer { close, answered: answered.clone() }, Closing { both: Some((stopped, own)), answered })
    }

    /// Closes the connection; tells whether there still was one.
    pub(crate) fn close(self) -> bool {
        self.close.send(true).is_ok()
    }

    /// Tells whether its first request was answered, be it by a stream that goes on.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Tells whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.close.is_closed()
    }
}

impl Closing {
    /// Notes that a request was answered.
    pub(crate) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Waits for the end, also when it has come already.
    pub(crate) async fn wait(&mut self) {
        let Some((stopped, own)) = &mut self.both else { return pending().await };
        let closed = async {
            // A closer that went without a word closes nothing.
            if own.wait_for(|closed| *closed).await.is_err() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            _ = stopped.wait() => {}
            () = closed => {}
        }
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
    async fn a_connection_ends_by_itself_or_with_everything() {
        let ends = async |closing: &mut Closing| {
            tokio::time::timeout(std::time::Duration::from_secs(1), closing.wait()).await.is_ok()
        };
        let stop = Stop::new();
        let (one, mut first) = Closer::new(stop.listen());
        let (two, mut second) = Closer::new(stop.listen());
        assert!(!ends(&mut first).await);
        assert!(!one.is_over());
        assert!(one.close());
        assert!(ends(&mut first).await);
        assert!(!ends(&mut second).await, "it was not meant");
        drop(two);
        assert!(!ends(&mut second).await, "nobody can close it any more");
        stop.now(Ending::Told);
        assert!(ends(&mut second).await);
        let (three, third) = Closer::new(stop.listen());
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
