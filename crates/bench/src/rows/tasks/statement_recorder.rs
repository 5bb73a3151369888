//! A database that notes what is written to it, so that a raw program can write the same once more.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_taskdb::{DbError, Dialect, Row, Sql, Value};

/// Something that was done to a database.
pub(super) enum Done {
    /// A transaction began.
    Begun,
    /// It ended, and counts.
    Committed,
    /// A statement was carried out for each of these lists of values.
    Each(String, Vec<Vec<Value<'static>>>),
}

/// What was done to a database, in order.
#[derive(Clone, Default)]
pub(super) struct Recording(Arc<Mutex<Vec<Done>>>);

impl Recording {
    /// Returns the database that everything is passed on to, and noted.
    pub(super) fn of(&self, sql: Box<dyn Sql>) -> Box<dyn Sql> {
        Box::new(Recorded { sql, recording: self.clone() })
    }

    /// Returns what was noted, and begins anew.
    pub(super) fn take(&self) -> Vec<Done> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, done: Done) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(done);
    }
}

struct Recorded {
    sql: Box<dyn Sql>,
    recording: Recording,
}

impl Sql for Recorded {
    fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    fn run(&mut self, statements: &str) -> Result<(), DbError> {
        self.sql.run(statements)
    }

    fn execute_all<'a>(
        &mut self,
        statement: &str,
        values: &mut dyn Iterator<Item = Vec<Value<'a>>>,
    ) -> Result<(), DbError> {
        let values: Vec<Vec<_>> =
            values.map(|values| values.into_iter().map(Value::into_owned).collect()).collect();
        self.sql.execute_each(statement, &values)?;
        self.recording.note(Done::Each(self.dialect().write(statement).into_owned(), values));
        Ok(())
    }

    fn query(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        self.sql.query(statement, values)
    }

    fn begin(&mut self) -> Result<(), DbError> {
        self.recording.note(Done::Begun);
        self.sql.begin()
    }

    fn commit(&mut self) -> Result<(), DbError> {
        self.recording.note(Done::Committed);
        self.sql.commit()
    }

    fn lock_schema(&mut self) -> Result<(), DbError> {
        self.sql.lock_schema()
    }
}
