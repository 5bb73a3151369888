//! Output for people: styles, widths and wrapped text, numbers and times in words, and text of agents without whatever would
//! command a terminal. Also the signals with which people end a command, and the terminal in raw mode with its keys.

mod code_fence;
pub mod json_escape;
pub mod output;
mod raw_terminal;
pub mod sanitise;
mod signals;
pub mod streaming_wrap;
mod word_wrap;

pub use crossterm::event;
pub use raw_terminal::{Paste, RawTerminal, is_foreground};
pub use signals::on_exit_signal;
