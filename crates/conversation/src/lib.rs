//! A session as a conversation at a terminal: what happens scrolls by above, and below is a line to type on. Messages, answers and
//! commands go to the daemon; whatever dies meanwhile, what was typed stays.
//!
//! The `core` decides and knows neither terminal nor daemon; the `painter` writes, the `worker` asks, the `feed` listens.

mod core;
mod diff_lines;
mod editor;
mod feed;
mod history;
mod layout;
mod painter;
mod resize_debounce;
mod survey;
mod talk;
mod terminal;
mod worker;

pub use talk::{Conversation, Greeting, is_possible, obstacle};
pub use worker::Letters;
