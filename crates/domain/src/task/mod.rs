//! Tasks: units of requested work that wait for their turn and become runs.

mod busy_directories;
pub mod scheduler;
