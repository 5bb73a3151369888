//! Runs of pipelines as people see them: lines as steps are finished, tables, one run whole, the graph of its stages, and what a
//! project's file has run.

mod config_text;
mod details;
mod graph;
mod progress;
mod report;
#[cfg(test)]
mod samples;
mod screen;
mod standing;
mod table;
mod words;

pub use config_text::{config_runs, config_text, stage_text};
pub use details::write_run;
pub use graph::{Edge, edges, write_dot, write_graph};
pub use progress::Progress;
pub use report::write_report;
pub use screen::Screen;
pub use standing::{rest_lines, sum_text};
pub use table::write_runs;
