//! Output for people: styles, widths and wrapped text, numbers and times in words, and text of agents without whatever would
//! command a terminal. Also the signals with which people end a command.

pub mod json_escape;
pub mod output;
pub mod sanitise;
mod signals;

pub use signals::on_exit_signal;
