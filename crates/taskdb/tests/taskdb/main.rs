//! The database of tasks as its users see it: the same questions to SQLite and to Postgres, with the same answers.

mod conformance;
mod pipelines;
mod postgres;
mod records;
mod sessions;
mod sqlite;
