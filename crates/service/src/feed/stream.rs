//! Streams of news and their subscribers: how many there are, and how many were sent away because they were too slow. Both
//! are counted where news are handed over, so that no kind of follower is forgotten.

use std::sync::Arc;

use rekindle_store::meter::{Counter, Gauge};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// What is counted of a kind of stream.
#[derive(Debug, Default)]
pub struct Stream {
    pub(crate) subscribers: Gauge,
    pub(crate) dropped: Counter,
}

/// Someone who is told news.
#[derive(Debug)]
pub struct Subscription<T> {
    news: Receiver<T>,
    stream: Arc<Stream>,
}

impl<T: Clone> Subscription<T> {
    /// Counts someone who has begun to follow.
    pub fn new(news: Receiver<T>, stream: Arc<Stream>) -> Subscription<T> {
        stream.subscribers.up();
        Subscription { news, stream }
    }

    /// Waits for the next news. Whoever lagged behind is counted: nobody follows on after that.
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        let heard = self.news.recv().await;
        if let Err(RecvError::Lagged(_)) = heard {
            self.stream.dropped.inc();
        }
        heard
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        self.stream.subscribers.down();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use tokio::sync::broadcast;

    use super::*;

    #[test]
    fn who_lags_is_counted_once_and_who_goes_is_no_more() {
        let stream = Arc::<Stream>::default();
        let (tell, news) = broadcast::channel(2);
        let mut slow = Subscription::new(news, stream.clone());
        let other = Subscription::new(tell.subscribe(), stream.clone());
        (0..5).for_each(|n| drop(tell.send(n)));
        let mut context = Context::from_waker(Waker::noop());
        let heard = std::pin::pin!(slow.recv()).poll(&mut context);
        assert_eq!(heard, Poll::Ready(Err(RecvError::Lagged(3))));
        assert_eq!((stream.subscribers.get(), stream.dropped.get()), (2, 1));
        drop((slow, other));
        assert_eq!((stream.subscribers.get(), stream.dropped.get()), (0, 1));
    }
}
