//! A follower of one session: told every record once and in order, from the log itself; and between them the words that are
//! in no record yet.

use std::collections::VecDeque;
use std::sync::Arc;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::{Derived, SessionStatus};
use rekindle_store::crash_report::at_work;
use rekindle_store::log::{Cursor, Damage, LogReader};
use rekindle_wire::code::Code;
use rekindle_wire::event::Delta;
use rekindle_wire::view::HistoryMissing;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::spawn_blocking;

use super::recent::Read;
use super::{Attending, EncodedOnce, Feed, News, Subscription, Told};
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::session_span::session_span;
use crate::show::Views;
use crate::show::log::{history, log_line};
use crate::storage::Sessions;

/// Records read at once.
const PAGE: usize = 256;

/// Where following a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Behind a record; 0 for the beginning.
    After(u64),
    /// Behind a record that has this hash, or not at all.
    Point(u64, ChainHash),
}

/// Someone who follows a session.
pub struct Following {
    feed: Arc<Feed>,
    views: Arc<Views>,
    session: SessionId,
    news: Subscription<News>,
    /// The last record that was told, and where the next one begins.
    last: u64,
    next: Cursor,
    /// The newest record that is known to be there.
    known: u64,
    ready: VecDeque<Told>,
    /// The status that was told last, and whether there was anything since.
    status: Option<SessionStatus>,
    grown: bool,
    /// The message that was told last, and how much of it.
    heard: (String, usize),
    /// Where the log is damaged, in the history too: nothing behind it is told, and nothing follows.
    damage: Option<(Arc<Damage>, Cursor)>,
    over: bool,
    /// Kept while a person looks at what is told.
    _attending: Option<Attending>,
}

impl Following {
    pub(crate) fn new(
        feed: &Arc<Feed>,
        views: &Arc<Views>,
        session: SessionId,
        since: Since,
    ) -> Result<Following> {
        // Before the log is looked at: what comes meanwhile is news.
        let news = feed.follow(session);
        let current = views.store().open_session(session)?;
        let known = current.state.last_seq;
        views.workers.send_if_present(session, Command::Retell);
        let history = history(views.store(), session)?;
        let (after, wanted) = match since {
            Since::After(seq) => (seq, None),
            Since::Point(seq, hash) => (seq, Some(hash)),
        };
        let mut following = Following {
            feed: feed.clone(),
            views: views.clone(),
            session,
            news,
            last: 0,
            next: Cursor::START,
            known,
            ready: VecDeque::new(),
            status: None,
            grown: true,
            heard: (String::new(), 0),
            damage: current.damage.map(|damage| {
                let begin = history.place(damage.begin());
                (damage, begin)
            }),
            over: false,
            _attending: None,
        };
        let first = current.state.forked_from.map_or(1, |from| from.seq + 1);
        if let Some(why) = history.missing.as_ref().filter(|_| after.saturating_add(1) < first) {
            let missing = HistoryMissing { before: first, detail: why.clone() };
            following.ready.push_back(Told::HistoryMissing(missing));
        }
        match position(&history.reader, after, wanted)? {
            Some(next) => (following.last, following.next) = (after, next),
            None => {
                following.ready.push_back(Told::Reset { last_seq: known });
                following.over = true;
            }
        }
        Ok(following)
    }

    /// Says that a person looks at what is told.
    pub(crate) fn attended(mut self) -> Following {
        let clock = self.views.workers.records.clock().clone();
        self._attending = Some(self.feed.attendance.attend(self.session, clock));
        self
    }

    /// Returns the number of the newest record that is known to be there.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// Returns the number of the last record that was told, or is about to be.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Waits for the next thing to tell; none when it is over.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if self.over {
                return None;
            }
            if self.last < self.known {
                if let Err(error) = self.read().await {
                    self.end_with_error(&error);
                }
                continue;
            }
            if let Some((damage, _)) = self.damage.take() {
                self.over = true;
                return Some(Told::Damaged(damage));
            }
            if let Some(status) = self.changed_status() {
                return Some(Told::Status(Box::new(status)));
            }
            match self.news.recv().await {
                Ok(News::Appended(seq)) => (self.known, self.grown) = (self.known.max(seq), true),
                Ok(News::Said(words)) => {
                    if let Some(words) = self.unheard(&words) {
                        return Some(Told::Words(words));
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    self.over = true;
                    return Some(Told::TooSlow);
                }
                Err(RecvError::Closed) => self.over = true,
            }
        }
    }

    /// Ends because the log cannot be read. Only of a session that is gone it is said that it is: with any other, whoever
    /// follows comes again, when there are descriptors again for example.
    fn end_with_error(&mut self, error: &ServiceError) {
        self.over = true;
        let removed =
            || self.views.store().at_hand(self.session).is_some_and(|current| current.state.deleted);
        if error.code == Code::SessionUnknown || removed() {
            self.ready.push_back(Told::Deleted);
        } else {
            session_span(self.session)
                .in_scope(|| tracing::warn!("can no longer be followed: {}", error.text()));
        }
    }

    /// Returns what is new in some words. Those behind a gap are kept back: whoever comes in the middle of a message is
    /// about to be told its beginning, and these with it.
    fn unheard(&mut self, words: &Arc<EncodedOnce<Delta>>) -> Option<Arc<EncodedOnce<Delta>>> {
        let known = if self.heard.0 == words.message_id { self.heard.1 } else { 0 };
        let end = words.at + words.text.len();
        if words.at > known || end <= known {
            return None;
        }
        if self.heard.0 != words.message_id {
            self.heard.0.clone_from(&words.message_id);
        }
        self.heard.1 = end;
        if words.at == known {
            return Some(words.clone());
        }
        let text = words.text.get(known - words.at..)?.to_owned();
        Some(Arc::new(EncodedOnce::from(Delta { at: known, text, ..Delta::clone(words) })))
    }

    /// Returns the status if it is not what was told before: behind the records that made it so.
    fn changed_status(&mut self) -> Option<Derived> {
        if !std::mem::take(&mut self.grown) {
            return None;
        }
        let current = self.views.store().at_hand(self.session)?;
        let derived = self.views.status(&current.state, &current.tokens);
        let changed = current.state.last_seq <= self.last && self.status != Some(derived.status);
        changed.then(|| {
            self.status = Some(derived.status);
            derived
        })
    }

    /// Gets the next records, from who has read them or from the log.
    async fn read(&mut self) -> Result<()> {
        let before = self.last;
        self.take_recent();
        if self.last == before {
            self.read_log().await?;
        }
        if self.last == before {
            // Known and not there: the log is behind and will be written; the next news tell.
            self.known = self.last;
        }
        Ok(())
    }

    /// Takes records that another follower has read.
    fn take_recent(&mut self) {
        for read in self.feed.recent(self.session, self.last + 1, self.known) {
            if !self.push_record(read) {
                break;
            }
        }
    }

    /// Reads the log on a thread that may block: its disk may hang, and whoever is served here with us must not wait for it.
    async fn read_log(&mut self) -> Result<()> {
        let turn = self.feed.reading(self.session).await;
        let before = self.last;
        // Whoever had the turn before may have read what we want.
        self.take_recent();
        if self.last > before {
            return Ok(());
        }
        let (views, session) = (self.views.clone(), self.session);
        let (from, through) = (self.next, self.known);
        let page = spawn_blocking(move || {
            let page = read_page(views.store(), session, from, through);
            drop(turn);
            page
        });
        for read in page.await.map_err(|_| ServiceError::leaving())?? {
            if !self.push_record(read.clone()) {
                break;
            }
            self.feed.cache(self.session, &read);
        }
        Ok(())
    }

    /// Tells the record that stands next in the log, unless the log is damaged there.
    fn push_record(&mut self, read: Read) -> bool {
        if self.over || self.damage.as_ref().is_some_and(|(_, begin)| self.next >= *begin) {
            return false;
        }
        let Read { line, end } = read;
        (self.next, self.last) = (end, line.seq);
        let deleted = line.kind == "session.deleted";
        self.ready.push_back(Told::Record(line));
        if deleted {
            self.ready.push_back(Told::Deleted);
            self.over = true;
        }
        true
    }
}

/// Reads the records of a page from a place on, up to one that has a number.
fn read_page(store: &dyn Sessions, session: SessionId, from: Cursor, through: u64) -> Result<Vec<Read>> {
    let _at_work = at_work(session, "follow");
    let history = history(store, session)?;
    let mut lines = history.reader.forward(from);
    let mut page: Vec<Read> = Vec::new();
    while page.len() < PAGE && page.last().is_none_or(|read| read.line.seq < through) {
        let Some(raw) = lines.next().map_err(ServiceError::internal)? else { break };
        match log_line(raw.bytes) {
            Some(line) => page.push(Read { line: Arc::new(EncodedOnce::from(line)), end: raw.end }),
            // What is damaged in the log that a fork goes on from does not keep it from going on.
            None if raw.start < history.own() => {}
            None => break,
        }
    }
    Ok(page)
}

/// Finds where the record behind a point begins; none if the log is not what the caller thinks.
fn position(reader: &LogReader, after: u64, wanted: Option<ChainHash>) -> Result<Option<Cursor>> {
    if after == 0 {
        return Ok(Some(Cursor::START));
    }
    let Some(begin) = reader.find(after).map_err(ServiceError::internal)? else { return Ok(None) };
    let mut lines = reader.forward(begin);
    let Some(raw) = lines.next().map_err(ServiceError::internal)? else { return Ok(None) };
    let line = log_line(raw.bytes).filter(|line| line.seq == after);
    let same = line.is_some_and(|line| wanted.is_none_or(|hash| line.hash == Some(hash)));
    Ok(same.then_some(raw.end))
}
