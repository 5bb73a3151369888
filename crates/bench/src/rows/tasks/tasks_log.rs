//! The log of tasks that becomes rows, of whichever database.

use std::path::Path;
use std::time::Instant;

use rekindle_service::task_rows::catch_up;
use rekindle_store::Store;
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Sql, TaskDb};

use super::statement_recorder::{Done, Recording};
use crate::measure::rate;
use crate::table::Target;
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

impl Source {
    pub(super) fn make(home: &Path, tasks: usize) -> anyhow::Result<Source> {
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
