//! The records of tasks become rows, as when a database is made anew from the log: from the first record to the last. Raw: the
//! same rows in the same batches, which are in memory already.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use rekindle_taskdb::{Sqlite, TaskDb};
use rusqlite::Connection;

use super::projection_postgres;
use super::statement_recorder::Done;
use super::tasks_log::{Source, TARGET};
use crate::context::Context;
use crate::measure::{interleave, rate};
use crate::table::{Row, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (tasks, rounds) = context.pick((20_000, 7), (5_000, 3));
    let dir = context.directory()?;
    let source = Source::make(&dir.path().join("home"), tasks)?;
    let files = Files { directory: dir.path(), count: 0.into() };
    let written = source.record(Box::new(Sqlite::open(&files.next())?))?;
    let what = format!("records of {tasks} tasks become rows, SQLite");
    let [figures] = interleave(
        &what,
        rounds,
        || raw(&files.next(), &written, source.records()),
        || ours(&files.next(), &source),
    )?;
    drop(written);
    let sqlite = Row::compared(what, Unit::PerSecond, &figures, TARGET);
    Ok(vec![sqlite, projection_postgres::row(&source, tasks, rounds)?])
}

/// Names of files, each for one database.
struct Files<'a> {
    directory: &'a Path,
    count: std::cell::Cell<u32>,
}

impl Files<'_> {
    fn next(&self) -> PathBuf {
        self.count.set(self.count.get() + 1);
        self.directory.join(format!("{}.db", self.count.get()))
    }
}

fn ours(path: &Path, source: &Source) -> anyhow::Result<[f64; 1]> {
    source.project(TaskDb::open(Box::new(Sqlite::open(path)?))?)
}

/// Writes what was written before, by prepared statements.
fn raw(path: &Path, written: &[Done], records: usize) -> anyhow::Result<[f64; 1]> {
    // It makes the tables.
    drop(TaskDb::open(Box::new(Sqlite::open(path)?))?);
    let connection = Connection::open(path).context("cannot open the raw database")?;
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
         PRAGMA cache_size = -4096",
    )?;
    let begin = Instant::now();
    for done in written {
        match done {
            Done::Begun => connection.execute_batch("BEGIN IMMEDIATE")?,
            Done::Committed => connection.execute_batch("COMMIT")?,
            Done::Each(statement, lists) => {
                let mut prepared = connection.prepare_cached(statement)?;
                for values in lists {
                    prepared.execute(rusqlite::params_from_iter(values))?;
                }
            }
        }
    }
    Ok([rate(records, begin.elapsed())])
}
