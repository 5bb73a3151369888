//! Tasks as rows of a database: a projection of the stream of tasks, of the runs of sessions and of the ledgers of pipelines, for questions. What is true of a task is in the stream; rows may
//! be deleted, fall behind or come from an old backup, and catch up by the records behind the cursor that was written with them.
//!
//! [`project`] says what a record does to a row, purely. [`TaskDb`] writes rows and asks for them, in SQL that both databases
//! understand; [`Sqlite`] and [`PostgresSql`] carry it out.

mod columns;
mod database;
mod dialect;
mod error;
mod migrations;
mod postgres_sql;
pub mod project;
mod project_pipeline;
mod project_session;
mod query;
mod removal;
mod row;
mod run_transition;
mod sql;
mod sqlite;
mod stats;
mod values;

pub use database::{Batch, Cursor, TaskDb};
pub use dialect::Dialect;
pub use error::DbError;
pub use postgres_sql::PostgresSql;
pub use project_pipeline::{PipelineProjection, task_of_run};
pub use project_session::{Changes, SessionProjection, tasks_begun};
pub use query::{TaskPage, TaskQuery};
pub use row::{Progress, TaskRow, TaskUsage, TransitionRow};
pub use sql::{Row, Sql, Value};
pub use sqlite::Sqlite;
pub use stats::{Day, TaskCounts, TaskStats};
