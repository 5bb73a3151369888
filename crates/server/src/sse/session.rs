//! `GET /api/sessions/{id}/events`: one session, its records and what its agent is saying.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::Bytes;
use futures_util::stream::{Stream, StreamExt, unfold};
use rekindle_service::daemon::Following;
use rekindle_service::feed::Told;
use tokio::time::{Instant, Sleep, sleep};

use super::start::Start;
use super::{PING, PING_FRAME, frame, is_last};
use crate::app::App;
use crate::extract::Session;
use crate::respond::Answer;
use crate::stop::Closing;

/// Follows a session.
pub(crate) async fn follow(app: App, Session(id): Session, start: Start, closing: Closing) -> Answer {
    let Start { since, attended } = start;
    let following = app.ask_about(id, move |daemon| Ok(daemon.follow(id, since, attended)?)).await?;
    Ok(super::respond(events(following, next, closing)))
}

/// The next event, written, and whether nothing follows it; and who tells it.
pub(super) type Next<F> = Pin<Box<dyn Future<Output = (F, Option<(Bytes, bool)>)> + Send>>;

fn next(mut following: Following) -> Next<Following> {
    Box::pin(async move {
        let told = following.next().await;
        (following, told.map(|told| written(&told)))
    })
}

fn written(told: &Told) -> (Bytes, bool) {
    (frame(told), is_last(told))
}

struct Watcher<F> {
    /// Never given up half-way, so that nothing on its way is lost to a ping; none when the last event is written.
    pending: Option<Next<F>>,
    next: fn(F) -> Next<F>,
    /// One for the whole stream: to put it off costs less than to make another.
    ping: Pin<Box<Sleep>>,
}

pub(super) fn events<F: Send + 'static>(
    following: F,
    next: fn(F) -> Next<F>,
    mut closing: Closing,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let watcher = Watcher { pending: Some(next(following)), next, ping: Box::pin(sleep(PING)) };
    let events = unfold(watcher, |watcher| async {
        let (bytes, watcher) = watcher.step().await?;
        Some((Ok(bytes), watcher))
    });
    events.take_until(async move { closing.wait().await })
}

impl<F> Watcher<F> {
    async fn step(mut self) -> Option<(Bytes, Watcher<F>)> {
        self.ping.as_mut().reset(Instant::now() + PING);
        let pending = self.pending.as_mut()?;
        tokio::select! {
            biased;
            (following, event) = pending => {
                let (bytes, is_last) = event?;
                self.pending = (!is_last).then(|| (self.next)(following));
                Some((bytes, self))
            }
            () = &mut self.ping => Some((Bytes::from_static(PING_FRAME), self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;
    use crate::stop::{Closer, Ending, Stop};

    type Events = Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>>;

    fn following(stop: &Stop) -> (UnboundedSender<Told>, Events) {
        fn next(mut news: UnboundedReceiver<Told>) -> Next<UnboundedReceiver<Told>> {
            Box::pin(async move {
                let told = news.recv().await;
                // Whatever is taken is on its way for a while.
                tokio::time::sleep(PING / 3).await;
                (news, told.map(|told| written(&told)))
            })
        }
        let (tell, news) = unbounded_channel();
        (tell, Box::pin(events(news, next, Closer::new(stop.listen()).1)))
    }

    async fn text(events: &mut Events) -> Option<String> {
        events.next().await.map(|Ok(bytes)| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_pings_and_nothing_is_lost_to_them() {
        let stop = Stop::new();
        let (tell, mut events) = following(&stop);
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
    async fn a_stream_ends_at_once_when_serving_ends_or_the_daemon_leaves() {
        let stop = Stop::new();
        let (_tell, mut events) = following(&stop);
        let begun = Instant::now();
        stop.now(Ending::Told);
        assert_eq!(text(&mut events).await, None);
        assert_eq!(begun.elapsed().as_millis(), 0);
        let open = Stop::new();
        let (tell, mut events) = following(&open);
        drop(tell);
        assert_eq!(text(&mut events).await, None);
    }
}
