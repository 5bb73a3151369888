//! The records of tasks become rows, as when a database is made anew from the log: from the first record to the last. Raw: the
//! same rows in the same batches, which are in memory already.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use rekindle_service::task_database::catch_up;
use rekindle_store::Store;
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Sql, Sqlite, TaskDb};
use rusqlite::Connection;

use super::projection_postgres;
use super::recording::{Done, Recording};
use crate::context::Context;
use crate::measure::{interleave, rate};
use crate::table::{Row, Target, Unit};
use crate::task_records::fill;

/// The least of what a raw program reaches, with either database.
pub(super) const TARGET: Target = Target::RatioAtLeast(0.6);

/// Records of each task.
const RECORDS: usize = 3;

/// A log of tasks that becomes rows.
pub(super) struct Source {
    store: Store,
    owner: Owner,
    records: usize,
}

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
        || raw(&files.next(), &written, source.records),
        || ours(&files.next(), &source),
    )?;
    drop(written);
    let sqlite = Row::compared(what, Unit::PerSecond, &figures, TARGET);
    Ok(vec![sqlite, projection_postgres::row(&source, tasks, rounds)?])
}

impl Source {
    fn make(home: &Path, tasks: usize) -> anyhow::Result<Source> {
        let store = fill(home, tasks, 90)?;
        let owner = Owner { home_id: store.home_id().to_string(), host: "machine".into() };
        Ok(Source { store, owner, records: tasks * RECORDS })
    }

    /// Writes all rows; returns how many records a second became rows.
    pub(super) fn project(&self, mut db: TaskDb) -> anyhow::Result<[f64; 1]> {
        let begin = Instant::now();
        catch_up(&self.store, &self.owner, &mut db)?;
        Ok([rate(self.records, begin.elapsed())])
    }

    /// Writes all rows; returns what was written.
    pub(super) fn record(&self, sql: Box<dyn Sql>) -> anyhow::Result<Vec<Done>> {
        let recording = Recording::default();
        let db = TaskDb::open(recording.of(sql))?;
        // The tables are there already when something is measured.
        drop(recording.take());
        self.project(db)?;
        Ok(recording.take())
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }
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
