//! Keeping an agent alive without a supervisor.
//!
//! A *holder* is a small detached process that owns one agent's pipes and writes everything that passes to a
//! journal on disk. Supervisors come and go: they read the journal and speak to the holder over a socket. What
//! both sides share is here: the directory, the journal, the protocol; then the holder itself and the
//! supervisor's side. This crate uses none of the others: holders outlive upgrades.

pub mod client;
pub mod descriptors;
pub mod dir;
mod file_ops;
pub mod identity;
pub mod journal;
pub mod run;
pub mod stamp;
pub mod tree;
pub mod wire;
