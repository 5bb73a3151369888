//! What was found of the result of a step that other runs share.

use rekindle_domain::id::{PipelineId, RunName};
use rekindle_domain::pipeline::cached_result::CachedResult;
use rekindle_domain::pipeline::evidence::CacheFound;

/// What is there of the result of a step.
#[derive(Debug, Default)]
pub(super) enum Cached {
    /// Nothing that may be used.
    #[default]
    Nothing,
    /// All of it.
    Result(Box<CachedResult<'static>>),
    /// This run makes it.
    BeingMade(PipelineId),
}

impl Cached {
    pub(super) fn evidence(&self) -> CacheFound {
        match self {
            Cached::Nothing => CacheFound::Miss,
            Cached::Result(result) => CacheFound::Hit(result.to),
            Cached::BeingMade(_) => CacheFound::BeingMade,
        }
    }

    /// Says whom a run waits for that wants the same result.
    pub(super) fn waits_text(&self) -> String {
        match self {
            Cached::BeingMade(run) => match RunName::of(*run) {
                Some(name) => format!("{name} is doing the same step: its result will be used"),
                None => format!("{run} is doing the same step: its result will be used"),
            },
            Cached::Nothing | Cached::Result(_) => "another run is doing the same step".to_owned(),
        }
    }
}
