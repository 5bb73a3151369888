//! Following all sessions on a thread of its own: which one something happened to, and whether there is a daemon that
//! tells. Looks for the next daemon as long as anyone listens, and starts none: whoever only looks changes nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::daemon_file::{self, DaemonState};
use super::http::{self, Ask};
use super::server::Server;
use super::sse::{self, Event};
use super::target::Target;

/// How long a daemon may take to begin its answer.
const HEAD: Duration = Duration::from_secs(5);

/// How long a daemon may say nothing: it says that there is nothing to say every 15 s.
const SILENCE: Duration = Duration::from_secs(40);

/// Pauses between two looks for a daemon: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A daemon tells from now on: what happened before is to be asked for.
    Told,
    /// Something happened to a session.
    Changed(String),
    /// A session was removed.
    Gone(String),
    /// No daemon tells anything.
    Away,
}

/// Begins to follow the daemon elsewhere, if there is one, or that of the home; `tell` says whether anyone still listens.
pub fn follow(
    home: PathBuf,
    server: Option<Arc<Server>>,
    mut tell: impl FnMut(News) -> bool + Send + 'static,
) {
    let look = move || match (&server, daemon_file::find_daemon(&home)) {
        (Some(server), _) => Some(Target::remote(Arc::clone(server))),
        (None, DaemonState::Lives(place)) => Some(Target::local(&home, place)),
        (None, _) => None,
    };
    std::thread::spawn(move || {
        let Ok(runtime) = http::runtime() else { return };
        let (mut pause, mut away) = (FIRST_PAUSE, false);
        loop {
            let mut heard = false;
            if let Some(target) = look() {
                let mut told = |news| {
                    heard = true;
                    tell(news)
                };
                if !runtime.block_on(read(&target, &mut told)) {
                    return;
                }
            }
            if heard {
                (pause, away) = (FIRST_PAUSE, false);
            }
            // Said again now and then, so that it is noticed when nobody listens any more.
            if (!std::mem::replace(&mut away, true) || pause == LAST_PAUSE) && !tell(News::Away) {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    });
}

/// Reads the stream until nobody tells any more, or the daemon wants us to begin again; tells whether anyone still listens.
async fn read(target: &Target, tell: &mut impl FnMut(News) -> bool) -> bool {
    let headers = vec![("accept", "text/event-stream")];
    let ask = Ask { method: "GET", path: "/api/events".into(), headers, ..Ask::default() };
    let head = tokio::time::timeout(HEAD, http::send(target, &ask)).await;
    let Ok(Ok(response)) = head else { return true };
    if response.status().as_u16() != 200 {
        return true;
    }
    if !tell(News::Told) {
        return false;
    }
    let heard = sse::each_event(response.into_body(), Some(SILENCE), |event| match event.name.as_str() {
        "too_slow" => Some(true),
        _ => news(&event).is_some_and(|news| !tell(news)).then_some(false),
    });
    heard.await.unwrap_or(true)
}

fn news(event: &Event) -> Option<News> {
    #[derive(Deserialize)]
    struct Which {
        id: String,
    }
    let which = || serde_json::from_str::<Which>(&event.data).ok();
    match event.name.as_str() {
        "session" => Some(News::Changed(which()?.id)),
        "deleted" => Some(News::Gone(which()?.id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_news_of_one_session_each() {
        let event = |name: &str, data: &str| Event { name: name.into(), id: None, data: data.into() };
        let changed = event("session", r#"{"id":"sess_1","status":"waiting"}"#);
        assert_eq!(news(&changed), Some(News::Changed("sess_1".into())));
        assert_eq!(news(&event("deleted", r#"{"id":"sess_1"}"#)), Some(News::Gone("sess_1".into())));
        assert_eq!(news(&event("too_slow", "{}")), None);
        assert_eq!(news(&event("session", "{}")), None);
    }

    #[test]
    fn whoever_has_no_daemon_is_told_so() {
        let home = tempfile::tempdir().expect("a directory");
        let (tell, told) = std::sync::mpsc::channel();
        follow(home.path().to_owned(), None, move |news| tell.send(news).is_ok());
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(News::Away));
    }
}
