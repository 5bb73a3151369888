//! A subscriber that never gives up: it follows one session across the lives of daemons by the id of the last event, and
//! writes down every record that it hears.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use rekindle_client::http::{self, Ask};
use rekindle_client::place::{self, Place, Seen};
use rekindle_client::sse::{Event, Parser};
use serde_json::Value;

use super::ask::{Leaving, PATIENCE};
use super::ledger::Heard;

/// Pause before it connects again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long a stream may be silent: a comment comes every 15 s.
const SILENT: Duration = Duration::from_secs(2);

/// What it has written down so far.
#[derive(Clone, Default)]
pub(super) struct Follower {
    heard: Arc<Mutex<Vec<Heard>>>,
    done: Arc<AtomicBool>,
}

impl Follower {
    /// Begins to follow a session.
    pub(super) fn begin(home: PathBuf, session: String, leaving: Leaving) -> Follower {
        let follower = Follower::default();
        let own = follower.clone();
        std::thread::spawn(move || own.run(&home, &session, &leaving));
        follower
    }

    /// Returns what was heard, once the newest record is among it or that takes too long; nothing is heard after it.
    pub(super) fn end(&self, newest: u64, leaving: &Leaving) -> Vec<Heard> {
        let there = || match self.heard.lock().ok()?.last() {
            Some(Heard::Record { seq, .. }) => (*seq >= newest).then_some(()),
            _ => None,
        };
        let _ = leaving.wait_for(PATIENCE / 4, there);
        self.done.store(true, Ordering::Relaxed);
        self.heard.lock().map(|heard| heard.clone()).unwrap_or_default()
    }

    /// Returns the number of the newest record that was heard.
    pub(super) fn newest(&self) -> u64 {
        let newest = self.heard.lock().ok().and_then(|heard| match heard.last() {
            Some(Heard::Record { seq, .. }) => Some(*seq),
            Some(Heard::Reset) | None => None,
        });
        newest.unwrap_or(0)
    }

    fn run(&self, home: &std::path::Path, session: &str, leaving: &Leaving) {
        let Ok(runtime) = http::runtime() else { return };
        let mut last = None;
        while !self.done.load(Ordering::Relaxed) && !leaving.now() {
            if let Seen::Lives(place) = place::look(home) {
                runtime.block_on(self.read(&place, session, &mut last));
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Reads a stream until it ends, or nothing more is wanted.
    async fn read(&self, place: &Place, session: &str, last: &mut Option<String>) {
        let path = format!("/api/sessions/{}/events", http::escape(session));
        let id = last.clone();
        let headers = id.as_deref().map(|id| ("last-event-id", id)).into_iter().collect();
        let ask = Ask { method: "GET", path, headers, ..Ask::default() };
        let reach = place.reach();
        let Ok(Ok(response)) = tokio::time::timeout(SILENT, http::send(&reach, &ask)).await else {
            return;
        };
        if response.status() != 200 {
            return;
        }
        let (mut body, mut parser) = (response.into_body(), Parser::default());
        // A silent stream may be that of a daemon that hangs: connecting again loses nothing.
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENT, body.frame()).await {
            let Some(bytes) = frame.data_ref() else { continue };
            for event in parser.push(bytes) {
                self.take(event, last);
            }
            if self.done.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn take(&self, event: Event, last: &mut Option<String>) {
        let heard = if event.name == "reset" {
            *last = None;
            Heard::Reset
        } else {
            let Some(id) = event.id else { return };
            let record: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
            let (seq, hash) = (record["seq"].as_u64().unwrap_or(0), record["h"].as_str().unwrap_or_default());
            *last = Some(id);
            Heard::Record { seq, hash: hash.to_owned(), kind: event.name }
        };
        if let Ok(mut all) = self.heard.lock()
            && !self.done.load(Ordering::Relaxed)
        {
            all.push(heard);
        }
    }
}
