//! The thread that finds what there is to tell: reads the logs of streams that have news behind where it read last, writes what they say
//! into the outbox with how far it has come, and decides about what has settled. It never reads on the thread of whoever appends, and
//! waits for no log.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::TasksState;
use rekindle_domain::time::Timestamp;
use rekindle_notify::NoticeKind;
use rekindle_notify::derive::{ClockRules, Derived, clock_notices, next_clock_notice};
use rekindle_notify::outbox::{Cursor, Entry, Noticed};

use super::NotificationSettings;
use super::catch_up::{behind, forgettable};
use super::hub::Hub;
use super::inbox::{Found, Happened, Inbox, Read};
use super::log_readers::LogReaders;
use super::read_session::{From, ReadSession, read_session};
use super::read_tasks::{ReadTasks, read_tasks};
use super::release::{LOOK_AGAIN, noticed, recipients};
use super::standing::Surroundings;
use crate::error::chain;
use crate::test_knobs::{crash_point, hurried};

/// How often is written how far was read where there was nothing to tell; so much is read again after a crash.
const FLUSH_EVERY: Duration = Duration::from_secs(60);

/// How long an append may take from its time to being noted. What was written earlier has been.
const UNNOTED_MS: i64 = 60_000;

/// When what cannot be done yet is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// How long a start may take before what waits is delivered although nobody knows whether it is still so.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// The longest that the thread sleeps: the clock on the wall may have been set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

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
    reading: HashSet<StreamId>,
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
            reading: HashSet::new(),
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
            let happened = self.inbox.wait(self.patience());
            if happened.closed {
                return self.write_ahead();
            }
            self.turn(happened);
        }
    }

    /// Reads what the last daemon left; tells whether it could, before nobody needed it any more.
    pub(super) fn open(&mut self) -> bool {
        while let Err(error) = self.hub.load() {
            tracing::error!("nobody is notified before the outbox can be read: {}", chain(&error));
            // News are noted meanwhile, one place for each stream.
            let begin = Instant::now();
            while begin.elapsed() < LONGEST_SLEEP {
                let happened = self.inbox.wait(LONGEST_SLEEP - begin.elapsed().min(LONGEST_SLEEP));
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
            self.reading.remove(&read.stream);
            self.take_in(read);
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

    /// Looks which sessions were not read to their end. Those whose logs are still being read are looked at again.
    fn survey(&mut self) {
        let all = self.around.directory.all(&*self.around.store);
        self.surveyed = !all.iter().any(|entry| entry.is_unread());
        let (caught_up, reading) = (&self.caught_up, &self.reading);
        let is_new = |state: &&SessionState| {
            let stream = StreamId::from(state.id);
            !caught_up.contains(&stream) && !reading.contains(&stream)
        };
        let usable = all.iter().filter(|entry| entry.is_usable() && !entry.state.deleted);
        let states: Vec<&SessionState> = usable.map(|entry| &*entry.state).filter(is_new).collect();
        let planned: Vec<(StreamId, From)> = self.hub.with(|outbox| {
            let from = |state: &&SessionState| {
                Some((state.id.into(), behind(outbox, self.as_of, self.first_time, state)?))
            };
            states.iter().filter_map(from).collect()
        });
        for (stream, from) in planned {
            self.news.entry(stream).or_insert(0);
            self.planned.insert(stream, from);
        }
        if self.surveyed {
            let known: HashMap<StreamId, (u64, Timestamp)> = all
                .iter()
                .map(|entry| (entry.state.id.into(), (entry.state.last_seq, entry.state.updated_at)))
                .collect();
            let gone = self.hub.with(|outbox| {
                let state = |stream: StreamId| known.get(&stream).copied();
                forgettable(outbox, self.as_of, state).collect::<Vec<_>>()
            });
            self.hub.write(gone.into_iter().map(|stream| Entry::Forgotten { stream }).collect());
            self.next_clock = Some(self.now());
        }
    }

    /// Has logs read that have news, each by one thread at a time.
    fn read_news(&mut self) {
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = None;
        let free: Vec<StreamId> =
            self.news.keys().filter(|stream| !self.reading.contains(*stream)).copied().collect();
        for stream in free {
            let Some(first) = self.news.remove(&stream) else { continue };
            self.reading.insert(stream);
            let (around, inbox) = (self.around.clone(), self.inbox.clone());
            match stream.session() {
                Some(session) => {
                    let from = self.from(stream, first);
                    self.readers.submit(Box::new(move || {
                        let found = read_session(&around, session, &from, first).map(Found::Session);
                        inbox.hand_over(Read { stream, found });
                    }));
                }
                None => {
                    let (before, behind) = (self.tasks.clone(), self.cursor(stream).map(|cursor| cursor.seq));
                    self.readers.submit(Box::new(move || {
                        let found = read_tasks(&around.store, before, behind);
                        inbox.hand_over(Read {
                            stream,
                            found: found.map(|read| Found::Tasks(Box::new(read))),
                        });
                    }));
                }
            }
        }
    }

    /// Returns where the log of a session is read from.
    fn from(&mut self, stream: StreamId, first: u64) -> From {
        if let Some(planned) = self.planned.remove(&stream) {
            return planned;
        }
        if self.caught_up.contains(&stream) {
            return From::Seq(first);
        }
        match self.cursor(stream) {
            Some(cursor) => From::Behind(cursor),
            None => From::Time(self.as_of),
        }
    }

    fn cursor(&self, stream: StreamId) -> Option<Cursor> {
        let ahead = self.ahead.get(&stream).cloned();
        ahead.or_else(|| self.hub.with(|outbox| outbox.cursor(stream).cloned()))
    }

    fn take_in(&mut self, read: Read) {
        let Read { stream, found } = read;
        match found {
            Ok(Found::Session(read)) => self.take_in_session(stream, read),
            Ok(Found::Tasks(read)) => self.take_in_tasks(stream, *read),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.ahead.remove(&stream);
                if self.hub.with(|outbox| outbox.cursor(stream).is_some()) {
                    self.hub.write(vec![Entry::Forgotten { stream }]);
                }
            }
            // It is written, only not where it is read.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.news.entry(stream).or_insert(0);
                self.retry_at = Some(Instant::now() + AGAIN);
            }
            Err(error) => {
                if self.unreadable.insert(stream) {
                    tracing::warn!(%stream, "nothing is told of it, because it cannot be read: {}", chain(&error));
                }
            }
        }
    }

    fn take_in_session(&mut self, stream: StreamId, read: ReadSession) {
        let ReadSession { state, derived, seq, h, sure, more } = read;
        self.unreadable.remove(&stream);
        self.caught_up.insert(stream);
        if more {
            self.note(HashMap::from([(stream, seq + 1)]));
        }
        let mut cursor = self.cursor(stream).unwrap_or_else(|| Cursor::new(stream));
        let mut notices = Vec::new();
        for derived in derived {
            if derived.continues.is_some() {
                // Told only to those who were told of the interruption.
                if cursor.interrupted.take() != derived.continues {
                    continue;
                }
            }
            notices.push(derived);
        }
        if seq >= cursor.seq {
            (cursor.seq, cursor.h) = (seq, h);
        }
        cursor.sure = sure.unwrap_or(cursor.sure).max(cursor.sure).min(cursor.seq);
        let due = next_clock_notice(&state, &self.rules, &cursor.watch());
        self.next_clock = self.next_clock.into_iter().chain(due).min();
        self.step(cursor, notices);
    }

    fn take_in_tasks(&mut self, stream: StreamId, read: ReadTasks) {
        let ReadTasks { derived, after, seq, h } = read;
        self.unreadable.remove(&stream);
        let cursor = Cursor { seq, h, sure: seq, ..Cursor::new(stream) };
        self.tasks = Some(after);
        // The first of all is written at once: without it the next daemon would begin anew.
        if derived.is_empty() && self.cursor(stream).is_none() {
            self.hub.write(vec![Entry::Step { cursors: vec![cursor], notices: Vec::new() }]);
            return;
        }
        self.step(cursor, derived);
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

    /// Decides about what has settled, unless there are news of its stream that nobody has read.
    fn release(&mut self) {
        let now = self.now();
        let due: Vec<_> = self.hub.with(|outbox| {
            let due = outbox.settling().filter(|(_, settling)| settling.due <= now);
            due.map(|(n, settling)| (n, settling.clone())).collect()
        });
        for (n, settling) in due {
            let notice = &settling.notice;
            let stream = notice.session_id.map_or(StreamId::tasks(), StreamId::from);
            if self.reading.contains(&stream) || self.news.contains_key(&stream) {
                continue;
            }
            let mut entries = Vec::new();
            let attended = self.around.is_attended(notice, now);
            let (to, open) = match self.around.still_holds(notice) {
                None if !self.delivering => continue,
                Some(false) => Default::default(),
                None | Some(true) => {
                    recipients(&self.settings.targets, &settling.told, notice, attended, now)
                }
            };
            if to.is_empty() && open {
                let again = now.plus_millis(i64::try_from(LOOK_AGAIN.as_millis()).unwrap_or(i64::MAX));
                self.hub.with(|outbox| outbox.put_off(n, again));
                continue;
            }
            if notice.kind == NoticeKind::Interrupted && !to.is_empty() {
                let mut cursor = self.cursor(stream).unwrap_or_else(|| Cursor::new(stream));
                cursor.interrupted = notice.run_id;
                self.ahead.remove(&stream);
                entries.push(Entry::Step { cursors: vec![cursor], notices: Vec::new() });
            }
            entries.push(Entry::Settled { n, at: now, to, open });
            self.hub.write(entries);
        }
    }

    /// Tells what the clock says of runs that go on.
    fn look_at_clock(&mut self) {
        let now = self.now();
        if self.next_clock.is_none_or(|at| at > now) {
            return;
        }
        self.next_clock = None;
        let active = self.around.directory.active_if_surveyed(&*self.around.store);
        for entry in active.into_iter().flat_map(|active| active.active) {
            let state = &*entry.state;
            if state.deleted || state.open_run().is_none() {
                continue;
            }
            self.look_at_clock_of(state, now);
        }
    }

    fn look_at_clock_of(&mut self, state: &SessionState, now: Timestamp) {
        let stream = StreamId::from(state.id);
        let mut cursor = self.cursor(stream).unwrap_or_else(|| Cursor::new(stream));
        let mut watch = cursor.watch();
        let notices = clock_notices(state, &self.rules, &mut watch, now);
        let due = next_clock_notice(state, &self.rules, &watch);
        self.next_clock = self.next_clock.into_iter().chain(due).min();
        if notices.is_empty() {
            return;
        }
        cursor.set_watch(watch);
        let words = self.around.log_details.at_hand(state).and_then(|details| details.last_words);
        let derived = notices.into_iter().map(|mut notice| {
            notice.last_words = words.clone();
            Derived { notice, recorded_at: now, continues: None }
        });
        // Nothing was read: what the cursor says of that stays.
        if cursor.seq == 0 {
            (cursor.seq, cursor.h, cursor.sure) = (state.last_seq, state.last_hash, state.last_seq);
        }
        self.step(cursor, derived.collect());
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
        wait.min(if busy { AGAIN } else { LONGEST_SLEEP }).min(flush).min(LONGEST_SLEEP)
    }
}
