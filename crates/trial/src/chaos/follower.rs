//! A subscriber that never gives up: it follows one session across the lives of daemons by the id of the last event, and
//! writes down every record that it hears.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rekindle_client::daemon_file::{self, DaemonFile, DaemonState};
use rekindle_client::http;
use rekindle_lab::{Connection, Event, EventStream, HOST};
use serde_json::Value;

use super::ledger::Heard;
use super::retrying_client::{CancelToken, PATIENCE};

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
    pub(super) fn begin(home: PathBuf, session: String, cancel: CancelToken) -> Follower {
        let follower = Follower::default();
        let own = follower.clone();
        std::thread::spawn(move || own.run(&home, &session, &cancel));
        follower
    }

    /// Returns what was heard, once the newest record is among it or that takes too long; nothing is heard after it.
    pub(super) fn end(&self, newest: u64, cancel: &CancelToken) -> Vec<Heard> {
        let there = || match self.heard.lock().ok()?.last() {
            Some(Heard::Record { seq, .. }) => (*seq >= newest).then_some(()),
            _ => None,
        };
        let _ = cancel.wait_for(PATIENCE / 4, there);
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

    fn run(&self, home: &Path, session: &str, cancel: &CancelToken) {
        let path = format!("/api/sessions/{}/events", http::escape(session));
        let mut last = None;
        while !self.is_done() && !cancel.is_cancelled() {
            if let DaemonState::Lives(place) = daemon_file::find_daemon(home) {
                // However the stream ended, the next one goes on behind the last event.
                let _ = self.read(&place, &path, &mut last);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Reads a stream until it ends, or nothing more is wanted.
    fn read(&self, place: &DaemonFile, path: &str, last: &mut Option<String>) -> io::Result<()> {
        // A silent stream may be that of a daemon that hangs: connecting again loses nothing.
        let stream = Connection::open_within(&place.socket, SILENT)?.into_stream();
        let mut events = EventStream::open(stream, path, HOST, last.as_deref())?;
        while !self.is_done() {
            events.hear(|event| -> io::Result<()> {
                self.take(event, last);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    fn take(&self, event: Event<'_>, last: &mut Option<String>) {
        let heard = if event.name == "reset" {
            *last = None;
            Heard::Reset
        } else {
            let Some(id) = event.id else { return };
            let record: Value = serde_json::from_str(event.data).unwrap_or(Value::Null);
            let (seq, hash) = (record["seq"].as_u64().unwrap_or(0), record["h"].as_str().unwrap_or_default());
            *last = Some(id.to_owned());
            Heard::Record { seq, hash: hash.to_owned(), kind: event.name.to_owned() }
        };
        if let Ok(mut all) = self.heard.lock()
            && !self.is_done()
        {
            all.push(heard);
        }
    }
}
