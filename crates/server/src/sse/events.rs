//! The stream of events of one follower: what it is told, and a comment whenever that is nothing for a while.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures_util::stream::{Stream, StreamExt, unfold};
use tokio::time::{Instant, Sleep, sleep};

use super::{PING, PING_FRAME};
use crate::stop::Closing;

/// Somebody who is told events, one after the other.
pub(super) trait Follower: Send + 'static {
    /// Waits for the next event, written; tells whether nothing follows it. None at the end.
    fn next_event(&mut self) -> impl Future<Output = Option<(Bytes, bool)>> + Send;
}

/// Returns what a follower is told, and a comment whenever it was told nothing for a while.
pub(super) fn events<F: Follower>(
    following: F,
    closing: Closing,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let told = unfold(Some(Box::new(following)), |following| async {
        let mut following = following?;
        let (bytes, is_last) = following.next_event().await?;
        Some((bytes, (!is_last).then_some(following)))
    });
    let ping = Box::pin(sleep(PING));
    Events { told: Box::pin(told.fuse()), told_at: Instant::now(), ping, closing }
}

/// A stream of events that is never silent for long.
struct Events<S> {
    /// Never given up half-way, so that nothing on its way is lost to a ping.
    told: Pin<Box<S>>,
    /// When there was something last.
    told_at: Instant,
    /// Put off only when it is over: that costs less than to do so at every event.
    ping: Pin<Box<Sleep>>,
    closing: Closing,
}

impl<S: Stream<Item = Bytes>> Stream for Events<S> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.closing.has_begun() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(told) = self.told.as_mut().poll_next(context) {
            self.told_at = Instant::now();
            return Poll::Ready(told.map(Ok));
        }
        while self.ping.as_mut().poll(context).is_ready() {
            let (now, due) = (Instant::now(), self.told_at + PING);
            if now >= due {
                self.told_at = now;
                self.ping.as_mut().reset(now + PING);
                return Poll::Ready(Some(Ok(Bytes::from_static(PING_FRAME))));
            }
            self.ping.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_service::feed::Told;
    use rekindle_service::log::LogLine;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::super::{frame, is_last};
    use super::*;
    use crate::stop::Closer;

    type Streamed = Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>>;

    impl Follower for UnboundedReceiver<Told> {
        async fn next_event(&mut self) -> Option<(Bytes, bool)> {
            let told = self.recv().await;
            // Whatever is taken is on its way for a while.
            tokio::time::sleep(PING / 3).await;
            told.map(|told| (frame(&told), is_last(&told)))
        }
    }

    fn following() -> (UnboundedSender<Told>, Closer, Streamed) {
        let (tell, news) = unbounded_channel();
        let (closer, signal) = Closer::new();
        (tell, closer, Box::pin(events(news, signal.closing)))
    }

    async fn text(events: &mut Streamed) -> Option<String> {
        events.next().await.map(|Ok(bytes)| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_pings_and_nothing_is_lost_to_them() {
        let (tell, _closer, mut events) = following();
        let begun = Instant::now();
        assert_eq!(text(&mut events).await.as_deref(), Some(": ping\n\n"));
        assert_eq!(begun.elapsed().as_secs(), 15);
        let late = tokio::spawn(async move {
            tokio::time::sleep(PING - PING / 6).await;
            tell.send(Told::Deleted).expect("a follower");
        });
        assert_eq!(text(&mut events).await.as_deref(), Some(": ping\n\n"), "while it is on its way");
        assert_eq!(text(&mut events).await.as_deref(), Some("event: deleted\ndata: {}\n\n"));
        assert_eq!(text(&mut events).await, None, "nothing follows the last event");
        late.await.expect("it was told");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_at_once_when_its_connection_is_closed_or_the_daemon_leaves() {
        let (_tell, closer, mut events) = following();
        let begun = Instant::now();
        closer.close();
        assert_eq!(text(&mut events).await, None);
        assert_eq!(begun.elapsed().as_millis(), 0);
        let (tell, _closer, mut events) = following();
        drop(tell);
        assert_eq!(text(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_comes_when_nothing_else_did_for_its_time() {
        let (tell, _closer, mut events) = following();
        let begun = Instant::now();
        // On its way for a third of the time, told at another third.
        let late = tokio::spawn(async move {
            tokio::time::sleep(PING / 3).await;
            let line = LogLine { seq: 7, kind: "a".to_owned(), hash: None, line: "{}".to_owned() };
            tell.send(Told::Record(Arc::new(line.into()))).expect("a follower");
            tell
        });
        assert!(text(&mut events).await.is_some_and(|text| text.starts_with("event: a\nid: 7\n")));
        assert_eq!(begun.elapsed(), PING / 3 * 2);
        assert_eq!(text(&mut events).await.as_deref(), Some(": ping\n\n"));
        assert_eq!(begun.elapsed(), PING / 3 * 2 + PING);
        drop(late.await.expect("it was told"));
    }
}
