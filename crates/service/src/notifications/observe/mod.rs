//! The thread that finds what there is to tell: reads the logs of streams that have news behind where it read last, writes what they say
//! into the outbox with how far it has come, and decides about what has settled. It never reads on the thread of whoever appends, and
//! waits for no log.

mod due;
mod streams;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;
use rekindle_domain::task::TasksState;
use rekindle_domain::time::Timestamp;
use rekindle_notify::derive::{ClockRules, Derived};
use rekindle_notify::outbox::{Cursor, Entry, Noticed};

use super::NotificationSettings;
use super::hub::Hub;
use super::inbox::{Happened, Inbox};
use super::log_readers::LogReaders;
use super::read_session::From;
use super::release::noticed;
use super::standing::Surroundings;
use crate::error::chain;
use crate::test_knobs::{crash_point, hurried};

/// How often is written how far was read where there was nothing to tell; so much is read again after a crash.
const FLUSH_EVERY: Duration = Duration::from_secs(60);

/// How long an append may take from its time to being noted. What was written earlier has been.
const UNNOTED_MS: i64 = 60_000;

/// When what cannot be done yet is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// How long news are gathered after some were read: far less than anybody notices, and whoever appends a thousand a second shares the
/// machine with one look at them instead of a thousand.
const GATHER: Duration = Duration::from_millis(10);

/// How long a start may take before what waits is delivered although nobody knows whether it is still so.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// The longest that the thread sleeps: the clock on the wall may have been set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// A log that somebody reads: its first news, and where reading began.
struct Reading {
    first: u64,
    from: Option<From>,
}

/// Finds what there is to tell.
pub(super) struct NewsObserver {
    settings: NotificationSettings,
    rules: ClockRules,
    hub: Arc<Hub>,
    inbox: Arc<Inbox>,
    readers: LogReaders,
    around: Arc<Surroundings>,
    /// When this daemon began: what happened before settles with the start.
    began: Timestamp,
    /// Everything written before this was read in streams that have no cursor.
    as_of: Timestamp,
    first_time: bool,
    /// News that nobody reads yet, and streams that somebody does.
    news: HashMap<StreamId, u64>,
    reading: HashMap<StreamId, Reading>,
    /// Streams that were read by this daemon: they go on from their news.
    caught_up: HashSet<StreamId>,
    /// How far streams were read, where that is in no entry yet.
    ahead: HashMap<StreamId, Cursor>,
    /// The tasks as of what was read of them.
    tasks: Option<TasksState>,
    /// Streams that cannot be read: told once.
    unreadable: HashSet<StreamId>,
    /// Logs that are read from elsewhere than their news on.
    planned: HashMap<StreamId, From>,
    surveyed: bool,
    delivering: bool,
    /// When logs are read next, if that is not at once.
    retry_at: Option<Instant>,
    next_clock: Option<Timestamp>,
    flushed: Instant,
}

impl NewsObserver {
    pub(super) fn new(
        settings: NotificationSettings,
        hub: Arc<Hub>,
        inbox: Arc<Inbox>,
        readers: LogReaders,
        around: Arc<Surroundings>,
    ) -> NewsObserver {
        let began = around.clock.now();
        let rules = ClockRules { stall_after: settings.stall_after, progress_every: settings.progress_every };
        NewsObserver {
            settings,
            rules,
            hub,
            inbox,
            readers,
            around,
            began,
            as_of: began,
            first_time: false,
            news: HashMap::new(),
            reading: HashMap::new(),
            caught_up: HashSet::new(),
            ahead: HashMap::new(),
            tasks: None,
            unreadable: HashSet::new(),
            planned: HashMap::new(),
            surveyed: false,
            delivering: false,
            retry_at: None,
            next_clock: None,
            flushed: Instant::now(),
        }
    }

    /// Works until nobody needs it any more.
    pub(super) fn run(mut self) {
        if !self.open() {
            return;
        }
        loop {
            let happened = self.inbox.wait(self.patience(), self.retry_at);
            if happened.closed {
                return self.write_ahead();
            }
            self.turn(happened);
        }
    }

    /// Reads what the last daemon left; tells whether it could, before nobody needed it any more.
    pub(super) fn open(&mut self) -> bool {
        while let Err(error) = self.hub.load() {
            tracing::error!("no notifications are sent until the outbox can be read: {}", chain(&error));
            // News are noted meanwhile, one place for each stream.
            let begin = Instant::now();
            while begin.elapsed() < LONGEST_SLEEP {
                let happened = self.inbox.wait(LONGEST_SLEEP - begin.elapsed().min(LONGEST_SLEEP), None);
                if happened.closed {
                    return false;
                }
                self.note(happened.news);
            }
        }
        match self.hub.with(|outbox| outbox.as_of()) {
            Some(as_of) => self.as_of = as_of,
            None => {
                self.first_time = true;
                self.hub.write(vec![Entry::AsOf { at: self.began, next: 0 }]);
            }
        }
        self.news.entry(StreamId::tasks()).or_insert(0);
        true
    }

    /// Does everything that is due.
    pub(super) fn turn(&mut self, happened: Happened) {
        self.note(happened.news);
        for read in happened.read {
            let asked = self.reading.remove(&read.stream);
            self.take_in(read, asked);
        }
        if !self.surveyed && self.around.directory.is_surveyed() {
            self.survey();
        }
        self.begin_deliveries();
        self.hub.flush();
        if !self.hub.is_full() {
            self.read_news();
        }
        self.readers.relieve();
        self.release();
        self.look_at_clock();
        if self.flushed.elapsed() >= hurried("NOTIFY_FLUSH", FLUSH_EVERY) {
            self.write_ahead();
        }
    }

    /// Lets deliveries begin once it is known how things stand, or it takes too long to know.
    fn begin_deliveries(&mut self) {
        let is_known = self.surveyed && self.tasks.is_some();
        let waited = Duration::from_millis(self.now().millis_since(self.began));
        if !self.delivering && (is_known || waited >= KNOWN_WITHIN) {
            self.delivering = true;
            self.hub.open();
        }
    }

    /// Tells whether there are logs that are still to be read.
    #[cfg(test)]
    pub(super) fn is_behind(&self) -> bool {
        !self.news.is_empty() || !self.reading.is_empty() || !self.surveyed
    }

    fn now(&self) -> Timestamp {
        self.around.clock.now()
    }

    fn note(&mut self, news: HashMap<StreamId, u64>) {
        for (stream, seq) in news {
            let first = self.news.entry(stream).or_insert(seq);
            *first = seq.min(*first);
        }
    }

    fn cursor(&self, stream: StreamId) -> Option<Cursor> {
        let ahead = self.ahead.get(&stream).cloned();
        ahead.or_else(|| self.hub.with(|outbox| outbox.cursor(stream).cloned()))
    }

    /// Writes what was found in a stream together with how far it was read; where there is nothing to tell that can wait.
    fn step(&mut self, cursor: Cursor, derived: Vec<Derived>) {
        let (now, mut n) = (self.now(), self.hub.with(|outbox| outbox.next()));
        let mut notices: Vec<Noticed> = Vec::new();
        for derived in derived {
            let attended = self.around.is_attended(&derived.notice, derived.recorded_at);
            let settled_at = self.settled_at(derived.recorded_at);
            if let Some(noticed) = noticed(&self.settings.targets, derived, attended, (now, settled_at), n) {
                notices.push(noticed);
                n += 1;
            }
        }
        if notices.is_empty() {
            self.ahead.insert(cursor.stream, cursor);
            return;
        }
        self.ahead.remove(&cursor.stream);
        crash_point("notify.found");
        self.hub.write(vec![Entry::Step { cursors: vec![cursor], notices }]);
        crash_point("notify.written");
    }

    /// Returns when something has settled that was recorded at a time; what happened before a start settles with that.
    fn settled_at(&self, recorded_at: Timestamp) -> Timestamp {
        let settle = i64::try_from(self.settings.settle.as_millis()).unwrap_or(i64::MAX);
        recorded_at.max(self.began).plus_millis(settle)
    }

    /// Writes how far was read where there was nothing to tell.
    pub(super) fn write_ahead(&mut self) {
        self.flushed = Instant::now();
        // Before anybody looks whether there are news: what is written from now on is noted later.
        let as_of = self.now().plus_millis(-UNNOTED_MS);
        let cursors: Vec<Cursor> = self.ahead.drain().map(|(_, cursor)| cursor).collect();
        let mut entries = Vec::new();
        if !cursors.is_empty() {
            entries.push(Entry::Step { cursors, notices: Vec::new() });
        }
        let is_read = self.news.is_empty() && self.reading.is_empty() && self.surveyed;
        let before = self.hub.with(|outbox| outbox.as_of());
        if is_read && before.is_none_or(|before| as_of > before) && !entries.is_empty() {
            entries.push(Entry::AsOf { at: as_of, next: 0 });
        }
        if !entries.is_empty() {
            self.hub.write(entries);
        }
    }

    /// Returns how long there is nothing to do unless something happens.
    fn patience(&self) -> Duration {
        let now = self.now();
        let until = |at: Timestamp| Duration::from_millis(at.millis_since(now));
        let settling = self.hub.with(|outbox| outbox.settling().map(|(_, settling)| settling.due).min());
        let wait =
            [settling, self.next_clock].into_iter().flatten().map(until).min().unwrap_or(LONGEST_SLEEP);
        let busy = !self.surveyed || !self.reading.is_empty() || !self.news.is_empty() || self.hub.is_full();
        let flush = hurried("NOTIFY_FLUSH", FLUSH_EVERY).saturating_sub(self.flushed.elapsed());
        let retry = self
            .retry_at
            .filter(|_| !self.news.is_empty())
            .map(|at| at.saturating_duration_since(Instant::now()));
        wait.min(retry.unwrap_or(if busy { AGAIN } else { LONGEST_SLEEP })).min(flush).min(LONGEST_SLEEP)
    }
}
