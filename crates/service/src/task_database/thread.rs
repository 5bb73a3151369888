//! The thread of the database of tasks: connects, catches up, answers; and again, for as long as there is a daemon.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::task::TasksState;
use rekindle_domain::time::Timestamp;
use rekindle_store::commit::Commits;
use rekindle_taskdb::{DbError, TaskDb, TaskStats};

use super::stale_pipelines;
use super::stale_sessions::{find_stale, is_without_runs};
use super::{Ask, Tools};
use crate::error::chain;
use crate::lock::locked;
use crate::task_rows::{
    CatchUpError, NotConnected, Reached, UnknownTask, catch_up, catch_up_pipeline, catch_up_session, connect,
};
use crate::test_knobs::hurried;

/// When a connection is tried again: at first, and at most.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// How long statistics are given again as they were.
const STATS_FOR: Duration = Duration::from_secs(2);

/// Sessions that grow are written together, not more often than this, unless somebody asks.
const SESSIONS_EVERY: Duration = Duration::from_millis(500);

/// How often what ended long ago is removed, unless it is kept for less than that.
const REMOVAL_EVERY: Duration = Duration::from_secs(3600);
const REMOVAL_AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// Where the thread stands with its database.
enum Connection {
    /// It can be asked, and has come this far.
    Open(Box<Opened>),
    /// It cannot, and is tried again then.
    Broken {
        why: String,
        again: Option<Instant>,
        patience: Duration,
        /// Something in it makes no sense: another is begun.
        damaged: bool,
    },
}

/// A database that can be asked.
struct Opened {
    db: TaskDb,
    /// Sessions and pipeline runs whose rows are behind; none is known until all sessions are.
    behind: Option<BTreeSet<StreamId>>,
    /// When those that have grown are written.
    due: Option<Instant>,
    /// When what ended long ago was removed.
    removed: Option<Instant>,
}

/// Does what is asked until nobody asks any more.
pub(super) fn run(asked: &Receiver<Ask>, tools: &Tools) {
    let mut connection = Connection::Broken {
        why: "it is being opened".into(),
        again: Some(Instant::now()),
        patience: FIRST_RETRY,
        damaged: false,
    };
    let mut stats: Option<(Instant, TaskStats, Timestamp)> = None;
    loop {
        connection = connection.tried_again(tools);
        let ask = match asked.recv_timeout(connection.patience(tools)) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => {
                connection = connection.and(|opened| opened.go_on(tools));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let leaves = matches!(ask, Ask::Leave);
        // Whoever asks is told of everything that was recorded before.
        connection = connection.and(|opened| match &ask {
            Ask::RunsGrown => {
                opened.due.get_or_insert_with(|| Instant::now() + SESSIONS_EVERY);
                Ok(())
            }
            Ask::TasksGrown => opened.catch_up(tools),
            _ => opened.catch_up(tools).and_then(|()| opened.catch_up_grown(tools)),
        });
        connection = connection.answered(ask, tools, &mut stats);
        if leaves {
            return;
        }
        // However much is asked, what is behind catches up.
        connection = connection.and(|opened| opened.go_on(tools));
    }
}

impl Opened {
    /// Brings the rows of tasks up to date.
    fn catch_up(&mut self, tools: &Tools) -> Result<(), DbError> {
        as_of_before(catch_up(&*tools.store, &tools.owner, &mut self.db))
    }

    /// Brings the rows of the sessions and pipeline runs up to date that have grown.
    fn catch_up_grown(&mut self, tools: &Tools) -> Result<(), DbError> {
        self.due = None;
        let grown = std::mem::take(&mut *locked(&tools.grown));
        let has_rows =
            |stream: &StreamId| !stream.session().is_some_and(|session| is_without_runs(tools, session));
        for stream in grown.into_iter().filter(has_rows) {
            while self.catch_up_one(tools, stream)? == Reached::More {}
        }
        Ok(())
    }

    /// Writes one batch of a session or a pipeline run; what cannot be written yet is due later.
    fn catch_up_one(&mut self, tools: &Tools, stream: StreamId) -> Result<Reached, DbError> {
        let Some(session) = stream.session() else {
            let Some(run) = stream.pipeline() else { return Ok(Reached::End) };
            return reached(catch_up_pipeline(&*tools.store, &tools.owner, &mut self.db, run, u64::MAX));
        };
        let mut reached = self.write_one(tools, session, UnknownTask::Wait)?;
        if reached == Reached::UnknownTask && self.catch_up_with_recorded(tools)? {
            reached = self.write_one(tools, session, UnknownTask::PassOver)?;
        }
        if reached == Reached::UnknownTask {
            locked(&tools.grown).insert(stream);
            self.due = Some(Instant::now() + SESSIONS_EVERY);
        }
        Ok(reached)
    }

    fn write_one(
        &mut self,
        tools: &Tools,
        session: SessionId,
        unknown: UnknownTask,
    ) -> Result<Reached, DbError> {
        reached(catch_up_session(&*tools.store, &tools.owner, &mut self.db, session, u64::MAX, unknown))
    }

    /// Brings the rows of tasks up to date with everything that is recorded, be it not in their log yet; tells whether they are.
    /// A task is recorded with its first run or before, but the logs of one append are written one after the other.
    fn catch_up_with_recorded(&mut self, tools: &Tools) -> Result<bool, DbError> {
        if tools.store.committer().sync().is_err() {
            return Ok(false);
        }
        self.catch_up(tools)?;
        let stream = StreamId::tasks();
        let recorded = tools.store.stream::<TasksState>(stream).map(|tasks| tasks.fold.position().last_seq);
        let written = self.db.cursor(&tools.owner.home_id, stream.as_str())?.map(|cursor| cursor.seq);
        Ok(written >= recorded)
    }

    /// Does the next piece of what is to be done while nobody asks.
    fn go_on(&mut self, tools: &Tools) -> Result<(), DbError> {
        if self.behind.is_none() && tools.directory.is_surveyed() {
            locked(&tools.grown).clear();
            let runs = stale_pipelines::find_stale(tools, &mut self.db)?;
            let sessions = find_stale(tools, &mut self.db)?;
            self.behind = Some(sessions.into_iter().map(StreamId::from).chain(runs).collect());
        }
        if self.due.is_some_and(|due| due <= Instant::now()) {
            return self.catch_up_grown(tools);
        }
        if let Some(stream) = self.behind.as_ref().and_then(|behind| behind.first().copied()) {
            if self.catch_up_one(tools, stream)? != Reached::More
                && let Some(behind) = &mut self.behind
            {
                behind.remove(&stream);
            }
            return Ok(());
        }
        if self.removed.is_none_or(|removed| removed.elapsed() >= removal_every(tools))
            && self.behind.is_some()
        {
            self.removed = Some(Instant::now());
            return self.remove_ended(tools);
        }
        Ok(())
    }

    /// Removes what ended so long ago that nobody wants to keep it.
    fn remove_ended(&mut self, tools: &Tools) -> Result<(), DbError> {
        let before = |kept: Duration| {
            tools.clock.now().plus_millis(-i64::try_from(kept.as_millis()).unwrap_or(i64::MAX))
        };
        let (tasks, history) = (before(tools.settings.keep_tasks), before(tools.settings.keep_history));
        let removed = self.db.remove_ended(&tools.owner.home_id, tasks, history)?;
        if removed > 0 {
            tracing::info!(removed, "rows of tasks that ended long ago were removed");
        }
        Ok(())
    }

    /// Returns how long there is nothing to do unless somebody asks.
    fn patience(&self, tools: &Tools) -> Duration {
        match &self.behind {
            None => FIRST_RETRY,
            Some(behind) if !behind.is_empty() => Duration::ZERO,
            Some(_) => {
                let removal = self
                    .removed
                    .map_or(Duration::ZERO, |removed| removal_every(tools).saturating_sub(removed.elapsed()));
                self.due.map_or(removal, |due| removal.min(due.saturating_duration_since(Instant::now())))
            }
        }
    }
}

/// Returns how far the rows of a stream have come; whose log cannot be read now is behind.
fn reached(outcome: Result<Reached, CatchUpError>) -> Result<Reached, DbError> {
    match outcome {
        Ok(reached) => Ok(reached),
        Err(error) => as_of_before(Err(error)).map(|()| Reached::End),
    }
}

fn removal_every(tools: &Tools) -> Duration {
    tools.settings.keep_tasks.clamp(REMOVAL_AT_MOST_EVERY, REMOVAL_EVERY)
}

/// A log that cannot be read may be read again in a moment; what is asked meanwhile is answered as of before.
fn as_of_before(outcome: Result<(), CatchUpError>) -> Result<(), DbError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(CatchUpError::Database(error)) => Err(error),
        Err(error) => {
            tracing::warn!("the task database is behind: {}", chain(&error));
            Ok(())
        }
    }
}

impl Connection {
    /// Connects again, if it is time.
    fn tried_again(self, tools: &Tools) -> Connection {
        let Connection::Broken { why, again, patience, damaged } = self else { return self };
        if again.is_none_or(|again| again > Instant::now()) {
            return Connection::Broken { why, again, patience, damaged };
        }
        let home: &Path = tools.store.layout().home();
        match connect(&tools.settings.choice, home, tools.clock.now(), damaged.then_some(&why)) {
            Ok(db) => {
                let opened = Opened { db, behind: None, due: None, removed: None };
                Connection::Open(Box::new(opened)).and(|opened| opened.catch_up(tools))
            }
            Err(NotConnected::ForNow(now)) => {
                if now != why {
                    tracing::warn!("the task database cannot be reached, tasks continue without it: {now}");
                }
                let next = (patience * 2).min(hurried("TASKS_DB_AGAIN", LAST_RETRY));
                let again = Some(Instant::now() + patience);
                Connection::Broken { why: now, again, patience: next, damaged }
            }
            Err(NotConnected::ForGood(why)) => {
                tracing::error!("the task database is not used, tasks continue without it: {why}");
                Connection::Broken { why, again: None, patience, damaged }
            }
        }
    }

    /// Returns how long to wait for somebody who asks.
    fn patience(&self, tools: &Tools) -> Duration {
        match self {
            Connection::Open(opened) => opened.patience(tools),
            Connection::Broken { again: Some(again), .. } => again.saturating_duration_since(Instant::now()),
            Connection::Broken { again: None, .. } => REMOVAL_EVERY,
        }
    }

    /// Does something with the database, if it can be asked.
    fn and(self, work: impl FnOnce(&mut Opened) -> Result<(), DbError>) -> Connection {
        let Connection::Open(mut opened) = self else { return self };
        match work(&mut opened) {
            Ok(()) => Connection::Open(opened),
            Err(error) => broken(&error),
        }
    }

    /// Answers what is asked.
    fn answered(
        self,
        ask: Ask,
        tools: &Tools,
        stats: &mut Option<(Instant, TaskStats, Timestamp)>,
    ) -> Connection {
        let Connection::Open(mut opened) = self else {
            let Connection::Broken { why, .. } = &self else { return self };
            refuse(ask, why);
            return self;
        };
        let db = &mut opened.db;
        let failed = match ask {
            Ask::TasksGrown | Ask::RunsGrown | Ask::Leave => None,
            Ask::List(query, reply) => tell(db.list(&query), |answer| drop(reply.send(answer))),
            Ask::Tasks(ids, reply) => tell(db.tasks(&ids), |answer| drop(reply.send(answer))),
            Ask::Transitions(task, reply) => tell(db.transitions(task), |answer| drop(reply.send(answer))),
            Ask::Stats(reply) => {
                let fresh = stats.as_ref().filter(|(at, ..)| at.elapsed() < STATS_FOR);
                if let Some((_, known, as_of)) = fresh {
                    let _ = reply.send(Ok((known.clone(), *as_of)));
                    return Connection::Open(opened);
                }
                let now = tools.clock.now();
                let asked = db.stats(&tools.owner.home_id, now);
                if let Ok(found) = &asked {
                    *stats = Some((Instant::now(), found.clone(), now));
                }
                tell(asked.map(|found| (found, now)), |answer| drop(reply.send(answer)))
            }
        };
        match failed {
            None => Connection::Open(opened),
            Some(error) => broken(&error),
        }
    }
}

/// Tells an answer, and returns the error that it is, if the connection may be at fault.
fn tell<T>(outcome: Result<T, DbError>, reply: impl FnOnce(Result<T, String>)) -> Option<DbError> {
    match outcome {
        Ok(answer) => {
            reply(Ok(answer));
            None
        }
        Err(error) => {
            reply(Err(chain(&error)));
            Some(error)
        }
    }
}

fn broken(error: &DbError) -> Connection {
    let (why, damaged) = (chain(error), matches!(error, DbError::Damaged(_)));
    tracing::warn!("the task database failed and is reopened: {why}");
    let again = Some(Instant::now() + FIRST_RETRY);
    Connection::Broken { why, again, patience: FIRST_RETRY * 2, damaged }
}

/// Tells whoever asked that there is no answer.
fn refuse(ask: Ask, why: &str) {
    let why = why.to_owned();
    match ask {
        Ask::TasksGrown | Ask::RunsGrown | Ask::Leave => {}
        Ask::List(_, reply) => drop(reply.send(Err(why))),
        Ask::Tasks(_, reply) => drop(reply.send(Err(why))),
        Ask::Transitions(_, reply) => drop(reply.send(Err(why))),
        Ask::Stats(reply) => drop(reply.send(Err(why))),
    }
}
