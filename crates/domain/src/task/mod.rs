//! Tasks: units of requested work that wait for their turn and become runs.

pub mod compose;
pub mod dependencies;
mod directory_conflicts;
mod fold;
pub mod resume_context;
pub mod resumer;
pub mod retry;
pub mod scheduler;
mod state;
pub mod status_mapping;
pub mod transition;

pub use fold::is_met;
pub use state::{MAX_TASK_KEYS, TASKS_VERSION, Task, TaskCancel, TasksState};

#[cfg(test)]
mod tests;
