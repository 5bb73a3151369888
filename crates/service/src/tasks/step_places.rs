//! Places for what is no task and yet counts among them: the steps of pipeline runs. The scheduler decides about both together; who asks
//! for such places is told what came of that.

use std::path::PathBuf;

use rekindle_domain::id::TaskId;
use rekindle_domain::time::Timestamp;

/// Whoever asks for places of steps.
pub(crate) trait StepPlaces: Send + Sync {
    /// Returns what is asked for, and what runs have to themselves.
    fn see(&self) -> PlacesSeen;
    /// Tells whether anybody waits for a place.
    fn is_asked(&self) -> bool;
    /// Tells the step of a run, by the task that this is, whether it may begin.
    fn tell(&self, run: TaskId, answer: PlaceAnswer);
}

/// The places of steps.
#[derive(Debug, Default)]
pub(crate) struct PlacesSeen {
    pub(crate) wanted: Vec<WantedPlace>,
    /// Directories that runs have to themselves, also between their steps.
    pub(crate) held: Vec<(TaskId, PathBuf)>,
}

/// A place that a step waits for, or was given and has not begun to use.
#[derive(Debug)]
pub(crate) struct WantedPlace {
    /// The task that its run is.
    pub(crate) task: TaskId,
    pub(crate) agent: String,
    pub(crate) directory: String,
    /// When its run was started: it is as old as that.
    pub(crate) started_at: Timestamp,
    pub(crate) asked_at: Timestamp,
    /// Its run has its directory already.
    pub(crate) has_directory: bool,
    pub(crate) granted: bool,
}

/// What came of a wish for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlaceAnswer {
    /// There is one, which is kept for it.
    Granted,
    /// It waits for this: for its directory, or else because as many run as may.
    Waits { why: String, is_directory: bool },
}
