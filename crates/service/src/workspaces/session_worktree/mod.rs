//! Worktrees of sessions: made before the first agent is launched, looked at, brought back into the directory that they were made for,
//! and removed. Nothing that is not saved elsewhere goes with one.

pub mod add;
pub(crate) mod changes;
pub(crate) mod diff;
#[cfg(test)]
mod lab;
pub(crate) mod leftover;
pub(crate) mod merge;
mod merge_rollback;
pub mod prepare;
mod removal_bundle;
pub(crate) mod remove;
