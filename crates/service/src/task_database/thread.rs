//! The thread of the database of tasks: connects, catches up, answers; and again, for as long as there is a daemon.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rekindle_domain::time::Timestamp;
use rekindle_taskdb::{DbError, TaskDb, TaskStats};

use super::catch_up::{CatchUpError, catch_up};
use super::connect::{NotConnected, connect};
use super::{Ask, Tools};
use crate::error::chain;

/// When a connection is tried again: at first, and at most.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// How long statistics are given again as they were.
const STATS_FOR: Duration = Duration::from_secs(2);

/// Where the thread stands with its database.
enum Connection {
    /// It can be asked, and has come this far.
    Open(Box<TaskDb>),
    /// It cannot, and is tried again then.
    Broken { why: String, again: Option<Instant>, patience: Duration },
}

/// Does what is asked until nobody asks any more.
pub(super) fn run(asked: &Receiver<Ask>, tools: &Tools) {
    let mut connection = Connection::Broken {
        why: "it is being opened".into(),
        again: Some(Instant::now()),
        patience: FIRST_RETRY,
    };
    let mut stats: Option<(Instant, TaskStats, Timestamp)> = None;
    loop {
        connection = connection.tried_again(tools);
        let patience = match &connection {
            Connection::Broken { again: Some(again), .. } => again.saturating_duration_since(Instant::now()),
            _ => Duration::from_secs(3600),
        };
        let ask = match asked.recv_timeout(patience) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let leaves = matches!(ask, Ask::Leave);
        // Whoever asks is told of everything that was recorded before.
        connection = connection.caught_up(tools);
        connection = connection.answered(ask, tools, &mut stats);
        if leaves {
            return;
        }
    }
}

impl Connection {
    /// Connects again, if it is time.
    fn tried_again(self, tools: &Tools) -> Connection {
        let Connection::Broken { why, again, patience } = self else { return self };
        if again.is_none_or(|again| again > Instant::now()) {
            return Connection::Broken { why, again, patience };
        }
        let home: &Path = tools.store.layout().home();
        match connect(&tools.choice, home, tools.clock.now()) {
            Ok(db) => Connection::Open(Box::new(db)).caught_up(tools),
            Err(NotConnected::ForNow(now)) => {
                if now != why {
                    tracing::warn!("the database of tasks cannot be reached, tasks go on without it: {now}");
                }
                let next = (patience * 2).min(LAST_RETRY);
                Connection::Broken { why: now, again: Some(Instant::now() + patience), patience: next }
            }
            Err(NotConnected::ForGood(why)) => {
                tracing::error!("the database of tasks is not used, tasks go on without it: {why}");
                Connection::Broken { why, again: None, patience }
            }
        }
    }

    /// Brings the database up to date, if it can be asked.
    fn caught_up(self, tools: &Tools) -> Connection {
        let Connection::Open(mut db) = self else { return self };
        match catch_up(tools, &mut db) {
            Ok(()) => Connection::Open(db),
            Err(CatchUpError::Database(error)) => broken(&error),
            Err(error) => {
                // The log may be read again in a moment; what is asked meanwhile is answered as of before.
                tracing::warn!("the database of tasks is behind: {}", chain(&error));
                Connection::Open(db)
            }
        }
    }

    /// Answers what is asked.
    fn answered(
        self,
        ask: Ask,
        tools: &Tools,
        stats: &mut Option<(Instant, TaskStats, Timestamp)>,
    ) -> Connection {
        let Connection::Open(mut db) = self else {
            let Connection::Broken { why, .. } = &self else { return self };
            refuse(ask, why);
            return self;
        };
        let failed = match ask {
            Ask::Grown | Ask::Leave => None,
            Ask::List(query, reply) => tell(db.list(&query), |answer| drop(reply.send(answer))),
            Ask::Tasks(ids, reply) => tell(db.tasks(&ids), |answer| drop(reply.send(answer))),
            Ask::Transitions(task, reply) => tell(db.transitions(task), |answer| drop(reply.send(answer))),
            Ask::Stats(reply) => {
                let fresh = stats.as_ref().filter(|(at, ..)| at.elapsed() < STATS_FOR);
                if let Some((_, known, as_of)) = fresh {
                    let _ = reply.send(Ok((known.clone(), *as_of)));
                    return Connection::Open(db);
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
            None => Connection::Open(db),
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
    let why = chain(error);
    tracing::warn!("the database of tasks failed, and is opened again: {why}");
    Connection::Broken { why, again: Some(Instant::now() + FIRST_RETRY), patience: FIRST_RETRY * 2 }
}

/// Tells whoever asked that there is no answer.
fn refuse(ask: Ask, why: &str) {
    let why = why.to_owned();
    match ask {
        Ask::Grown | Ask::Leave => {}
        Ask::List(_, reply) => drop(reply.send(Err(why))),
        Ask::Tasks(_, reply) => drop(reply.send(Err(why))),
        Ask::Transitions(_, reply) => drop(reply.send(Err(why))),
        Ask::Stats(reply) => drop(reply.send(Err(why))),
    }
}
