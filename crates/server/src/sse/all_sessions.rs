//! `GET /api/events`: all sessions. Who follows is told of each session that something happened to, with what it is
//! doing now; a session to which much happens is shown once for all of it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::stream::{Stream, unfold};
use rekindle_domain::id::SessionId;
use rekindle_service::daemon::Daemon;
use rekindle_service::feed::{Anywhere, Subscription};
use rekindle_service::session_span;
use rekindle_wire::event::{SessionChanged, SessionDeleted, TooSlow};
use rekindle_wire::view::SessionView;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::{PING, PING_FRAME, event};
use crate::app::App;
use crate::respond::Answer;
use crate::stop::Closing;

/// How long news are gathered: short for a person, long for an agent that writes a thousand records a second.
const GATHER: Duration = Duration::from_millis(50);

/// Followers of all sessions that look at the same time: they all look at the same sessions, and one of these whose log hangs
/// must not take a thread for each of them.
const LOOKING: usize = 16;

/// Makes the turns of those who look.
pub(crate) fn lookers() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(LOOKING))
}

/// Follows all sessions.
pub(crate) async fn follow(app: App, closing: Closing) -> Answer {
    let news = app.ask(|daemon| Ok(daemon.follow_all())).await?;
    let daemon = app.daemon;
    let watcher = Watcher::new(news, closing, app.lookers, move |sessions| look(&daemon, sessions));
    Ok(super::respond(events(watcher)))
}

/// Looks at sessions and writes an event for each; may block.
type Look = dyn Fn(&BTreeSet<SessionId>) -> Vec<u8> + Send + Sync;

struct Watcher {
    look: Arc<Look>,
    lookers: Arc<Semaphore>,
    /// None when the last event is written.
    news: Option<Subscription<Anywhere>>,
    closing: Closing,
    /// Sessions to look at.
    changed: BTreeSet<SessionId>,
    /// When they are looked at.
    due: Option<Instant>,
    /// What is being looked at; news are heard meanwhile.
    looking: Option<JoinHandle<Vec<u8>>>,
}

fn events(watcher: Watcher) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    unfold(watcher, |watcher| async {
        let (bytes, watcher) = watcher.step().await?;
        Some((Ok(bytes), watcher))
    })
}

impl Watcher {
    fn new(
        news: Subscription<Anywhere>,
        closing: Closing,
        lookers: Arc<Semaphore>,
        look: impl Fn(&BTreeSet<SessionId>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Watcher {
        let (look, changed) = (Arc::new(look), BTreeSet::new());
        Watcher { look, lookers, news: Some(news), closing, changed, due: None, looking: None }
    }

    async fn step(mut self) -> Option<(Bytes, Watcher)> {
        let ping = sleep(PING);
        tokio::pin!(ping);
        loop {
            let news = self.news.as_mut()?;
            let due = self.due.filter(|_| self.looking.is_none());
            tokio::select! {
                biased;
                () = self.closing.wait() => return None,
                heard = news.recv() => match heard {
                    Ok(Anywhere { session, .. }) => {
                        self.changed.insert(session);
                        self.due.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                    Err(RecvError::Closed) => return None,
                    Err(RecvError::Lagged(_)) => {
                        self.news = None;
                        let slow = TooSlow { hint: "connect again and list the sessions".into() };
                        return Some((event("too_slow", &slow), self));
                    }
                },
                shown = async { self.looking.as_mut()?.await.ok() }, if self.looking.is_some() => {
                    self.looking = None;
                    // Sessions that could not be looked at are shown when something happens to them again.
                    if let Some(bytes) = shown.filter(|bytes| !bytes.is_empty()) {
                        return Some((bytes.into(), self));
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let Ok(turn) = Arc::clone(&self.lookers).try_acquire_owned() else {
                        // More is gathered until others have looked.
                        self.due = Some(Instant::now() + GATHER);
                        continue;
                    };
                    self.due = None;
                    let (look, changed) = (Arc::clone(&self.look), std::mem::take(&mut self.changed));
                    self.looking = Some(tokio::task::spawn_blocking(move || {
                        let shown = look(&changed);
                        drop(turn);
                        shown
                    }));
                }
                () = &mut ping => return Some((Bytes::from_static(PING_FRAME), self)),
            }
        }
    }
}

fn look(daemon: &Daemon, sessions: &BTreeSet<SessionId>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for id in sessions {
        match daemon.session(*id) {
            Ok(session) => bytes.extend_from_slice(&session_event(&session)),
            Err(error) if matches!(error.code.status(), 404 | 410) => {
                bytes.extend_from_slice(&event("deleted", &SessionDeleted { id: *id }));
            }
            Err(error) => session_span(*id)
                .in_scope(|| tracing::warn!(code = %error.code, "cannot be shown: {}", error.text())),
        }
    }
    bytes
}

fn session_event(session: &SessionView) -> Bytes {
    let &SessionView { id, status, since, last_seq, .. } = session;
    let wait = session.wait.as_ref().map(Cow::Borrowed);
    event("session", &SessionChanged { id, status, since, wait, last_seq })
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use tokio::sync::broadcast;

    use super::*;
    use crate::stop::Closer;

    /// Writes down who was looked at.
    fn following(buffer: usize) -> (broadcast::Sender<Anywhere>, Closer, Watcher) {
        let (tell, news) = broadcast::channel(buffer);
        let look = |sessions: &BTreeSet<SessionId>| {
            let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
            names.join(" ").into_bytes()
        };
        let news = Subscription::new(news, Arc::default());
        let (closer, signal) = Closer::new();
        (tell, closer, Watcher::new(news, signal.closing, lookers(), look))
    }

    fn happened(session: &str, last_seq: u64) -> Anywhere {
        Anywhere { session: session.parse().expect("an id"), last_seq }
    }

    #[tokio::test(start_paused = true)]
    async fn much_that_happens_to_a_session_is_shown_once() {
        let (tell, _closer, watcher) = following(64);
        let mut events = Box::pin(events(watcher));
        for seq in 1..20 {
            tell.send(happened("sess_a", seq)).expect("a follower");
        }
        tell.send(happened("sess_b", 1)).expect("a follower");
        assert_eq!(events.next().await, Some(Ok("sess_a sess_b".into())));
        tell.send(happened("sess_b", 2)).expect("a follower");
        assert_eq!(events.next().await, Some(Ok("sess_b".into())));
        assert_eq!(events.next().await, Some(Ok(PING_FRAME.into())));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_others_looking_gathers_until_they_are_done() {
        let (tell, _closer, watcher) = following(64);
        let others = Arc::clone(&watcher.lookers).acquire_many_owned(LOOKING as u32).await.expect("turns");
        let mut events = Box::pin(events(watcher));
        tell.send(happened("sess_a", 1)).expect("a follower");
        assert_eq!(events.next().await, Some(Ok(PING_FRAME.into())), "it does not look");
        tell.send(happened("sess_b", 1)).expect("a follower");
        drop(others);
        assert_eq!(events.next().await, Some(Ok("sess_a sess_b".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_too_slow_is_told_so_and_sent_away() {
        let (tell, _closer, watcher) = following(2);
        let mut events = Box::pin(events(watcher));
        for seq in 1..20 {
            tell.send(happened("sess_a", seq)).expect("a follower");
        }
        let last = events.next().await.map(|Ok(bytes)| String::from_utf8_lossy(&bytes).into_owned());
        assert!(last.is_some_and(|text| text.starts_with("event: too_slow\ndata: {\"hint\":")));
        assert_eq!(events.next().await, None);
    }

    #[tokio::test]
    async fn the_stream_ends_when_its_connection_is_closed() {
        let (_tell, closer, watcher) = following(2);
        closer.close();
        assert_eq!(Box::pin(events(watcher)).next().await, None);
    }
}
