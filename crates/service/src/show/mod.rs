//! Showing state: sessions, runs, waits and logs as callers see them, one at a time or in lists.

pub(crate) mod cursor;
pub(crate) mod directory;
mod last_words;
pub(crate) mod lists;
pub mod log;
mod run_view;
pub(crate) mod session;
pub mod view;

pub(crate) use last_words::LastWords;
pub use last_words::last_words;
pub use run_view::run_view;
