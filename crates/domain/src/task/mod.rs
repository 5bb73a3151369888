//! Tasks: units of requested work that wait for their turn and become runs.

mod directory_conflicts;
pub mod scheduler;
