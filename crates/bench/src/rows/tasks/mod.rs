//! The rows about tasks: records of them in a real store, rows of them in real databases, decisions about them, and daemons
//! that have many.

pub(crate) mod accept;
pub(crate) mod many_ended_tasks;
pub(crate) mod projection;
mod projection_postgres;
pub(crate) mod scheduler_decision;
mod statement_recorder;
pub(crate) mod task_lifecycle;
mod tasks_log;
