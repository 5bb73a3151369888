//! Streams followed: which logs are read, from where on, and what was found in them.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::Instant;

use rekindle_domain::id::StreamId;
use rekindle_domain::session::SessionState;
use rekindle_notify::derive::next_clock_notice;
use rekindle_notify::outbox::{Cursor, Entry};

use super::{AGAIN, GATHER, NewsObserver, Reading};
use crate::error::chain;
use crate::notifications::catch_up::{behind, forgettable};
use crate::notifications::inbox::{Found, Read};
use crate::notifications::read_pipeline::{ReadPipeline, read_pipeline};
use crate::notifications::read_session::{From, ReadSession, read_session};
use crate::notifications::read_tasks::{ReadTasks, read_tasks};

impl NewsObserver {
    /// Looks which sessions were not read to their end. Those whose logs are still being read are looked at again.
    pub(super) fn survey(&mut self) {
        let all = self.around.directory.all(&*self.around.store);
        self.surveyed = !all.iter().any(|entry| entry.is_unread());
        let (caught_up, reading) = (&self.caught_up, &self.reading);
        let is_new = |state: &&SessionState| {
            let stream = StreamId::from(state.id);
            !caught_up.contains(&stream) && !reading.contains_key(&stream)
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
        // Runs that went on when they were last looked at: what they recorded since is news.
        let runs: Vec<StreamId> = self.hub.with(|outbox| {
            outbox
                .cursors()
                .map(|cursor| cursor.stream)
                .filter(|stream| stream.pipeline().is_some())
                .collect()
        });
        for run in runs {
            if self.reading.contains_key(&run) || self.caught_up.contains(&run) {
                continue;
            }
            self.news.entry(run).or_insert(0);
        }
        if self.surveyed {
            let known: HashMap<StreamId, &SessionState> =
                all.iter().map(|entry| (entry.state.id.into(), &*entry.state)).collect();
            let gone = self.hub.with(|outbox| {
                let state = |stream: StreamId| known.get(&stream).copied();
                forgettable(outbox, self.as_of, state).collect::<Vec<_>>()
            });
            self.hub.write(gone.into_iter().map(|stream| Entry::Forgotten { stream }).collect());
            self.next_clock = Some(self.now());
        }
    }

    /// Has logs read that have news, each by one thread at a time.
    pub(super) fn read_news(&mut self) {
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = None;
        let free: Vec<StreamId> =
            self.news.keys().filter(|stream| !self.reading.contains_key(*stream)).copied().collect();
        if !free.is_empty() {
            self.retry_at = Some(Instant::now() + GATHER);
        }
        for stream in free {
            let Some(first) = self.news.remove(&stream) else { continue };
            let (around, inbox) = (self.around.clone(), self.inbox.clone());
            if let Some(run) = stream.pipeline() {
                let known = self.cursor(stream).map(|cursor| cursor.seq);
                let behind = known.unwrap_or_else(|| first.saturating_sub(1));
                self.reading.insert(stream, Reading { first, from: None });
                self.readers.submit(Box::new(move || {
                    let found = read_pipeline(&around.store, run, behind).map(Found::Pipeline);
                    inbox.hand_over(Read { stream, found });
                }));
                continue;
            }
            match stream.session() {
                Some(session) => {
                    let from = self.from(stream, first);
                    self.reading.insert(stream, Reading { first, from: Some(from.clone()) });
                    self.readers.submit(Box::new(move || {
                        let found = read_session(&around, session, &from, first).map(Found::Session);
                        inbox.hand_over(Read { stream, found });
                    }));
                }
                None => {
                    self.reading.insert(stream, Reading { first, from: None });
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
        match self.cursor(stream) {
            // What was read together with earlier news is not news any more.
            Some(cursor) if self.caught_up.contains(&stream) => From::Seq(first.max(cursor.seq + 1)),
            Some(cursor) => From::Behind(cursor),
            None => From::Time(self.as_of),
        }
    }

    pub(super) fn take_in(&mut self, read: Read, asked: Option<Reading>) {
        let Read { stream, found } = read;
        if found.is_err()
            && let Some(from) = asked.as_ref().and_then(|asked| asked.from.clone())
        {
            // Whenever it can be read again, it is read from there.
            self.planned.insert(stream, from);
        }
        match found {
            Ok(Found::Session(read)) => self.take_in_session(stream, read),
            Ok(Found::Tasks(read)) => self.take_in_tasks(stream, *read),
            Ok(Found::Pipeline(read)) => self.take_in_pipeline(stream, read),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.ahead.remove(&stream);
                self.planned.remove(&stream);
                if self.hub.with(|outbox| outbox.cursor(stream).is_some()) {
                    self.hub.write(vec![Entry::Forgotten { stream }]);
                }
            }
            // It is written, only not where it is read.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.note(HashMap::from([(stream, asked.map_or(0, |asked| asked.first))]));
                self.retry_at = Some(Instant::now() + AGAIN);
            }
            Err(error) => {
                if self.unreadable.insert(stream) {
                    tracing::warn!(%stream, "no notifications are sent for it, because it cannot be read: {}", chain(&error));
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
        // It may be less than before, where a power cut took records.
        (cursor.seq, cursor.h) = (seq, h);
        cursor.sure = sure.unwrap_or(cursor.sure).min(seq);
        let due = next_clock_notice(&state, &self.rules, &cursor.watch());
        self.next_clock = self.next_clock.into_iter().chain(due).min();
        self.step(cursor, notices);
    }

    /// Of a run that goes on it is written at once how far it was read: by that the next daemon knows that there may be more. Of one that
    /// has ended nothing is kept, so that nobody reads its ledger again.
    fn take_in_pipeline(&mut self, stream: StreamId, read: ReadPipeline) {
        let ReadPipeline { derived, seq, h, has_ended } = read;
        self.unreadable.remove(&stream);
        self.caught_up.insert(stream);
        let cursor = Cursor { seq, h, sure: seq, ..Cursor::new(stream) };
        let is_first = self.hub.with(|outbox| outbox.cursor(stream).is_none());
        if derived.is_empty() && is_first && !has_ended {
            self.hub.write(vec![Entry::Step { cursors: vec![cursor], notices: Vec::new() }]);
            return;
        }
        self.step(cursor, derived);
        if has_ended {
            self.ahead.remove(&stream);
            if self.hub.with(|outbox| outbox.cursor(stream).is_some()) {
                self.hub.write(vec![Entry::Forgotten { stream }]);
            }
        }
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
}
