//! Tasks as people see them: a table that fits the terminal, one task whole, what happened to it, and how all of them stand.

mod details;
mod history;
mod stats;
mod table;

pub use details::{write_task, write_worktree};
pub use history::write_history;
pub use stats::write_stats;
pub use table::{count_text, write_tasks};
