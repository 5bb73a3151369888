//! Runs of pipelines as people see them: lines as steps are finished, tables, one run whole, the graph of its stages, and what a
//! project's file has run.

mod config_text;
mod details;
mod graph;
mod progress;
mod resume_report;
#[cfg(test)]
mod samples;
mod screen;
mod status_text;
mod table;
mod waiting;
mod words;

pub use config_text::{config_runs, config_text, stage_text};
pub use details::write_run;
pub use graph::{Edge, edges, write_dot, write_graph};
pub use progress::Progress;
pub use resume_report::write_report;
pub use screen::Screen;
pub use status_text::{rest_lines, sum_text};
pub use table::write_runs;
pub use waiting::Waiting;
