//! Pipelines: tasks that go through stages, each step of which is recorded before it is done and never done again once it is finished.

pub mod artifact;
pub mod builtin;
pub mod cached_result;
pub mod compose;
pub mod config_change;
pub mod drift;
pub mod evidence;
mod fold;
mod following;
pub mod key;
pub mod next_step;
pub mod outcome;
mod state;
pub mod summary;
pub mod template;
pub mod validate;

pub use following::{FailReason, Following};
pub use state::{
    Attempt, Counts, Cut, DriftNote, Ended, Payload, PipelineState, RunStatus, Started, StepResult, StepState,
};

#[cfg(test)]
mod tests;
