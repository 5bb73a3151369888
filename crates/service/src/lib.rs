//! Doing what was decided: an agent's journal becomes its session's log, and what the log says is to be sent is
//! sent. The rules are below, in the domain and the agent crate; here they meet files and processes.

pub mod access;
mod agents;
mod answers;
mod brought;
pub mod code;
pub mod common;
mod core;
mod crash;
mod cursor;
pub mod daemon;
mod directory;
pub mod error;
pub mod feed;
mod follow;
pub mod home;
mod hurry;
pub mod key;
mod last_words;
mod leaving;
mod link;
pub mod live;
mod messages;
pub mod metrics;
mod recent;
mod recovery;
pub mod request;
mod run_view;
mod sessions;
mod shape;
mod sign_in;
pub mod steady;
mod tokens;
pub mod upkeep;
pub mod view;
mod waits;
mod worker;

pub use last_words::last_words;
pub use run_view::run_view;
pub use worker::look_for_holder;
