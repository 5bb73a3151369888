//! The pipeline runs of a home, by the names of their directories.

use std::io;

use rekindle_domain::id::{PipelineId, RunName};

use crate::disk::{Disk, Entry, EntryKind, if_exists};
use crate::layout::Layout;

/// What is in `runs/`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PipelineRuns {
    /// The runs, oldest first.
    pub runs: Vec<RunName>,
    /// Names that are none of ours.
    pub foreign: Vec<String>,
}

impl PipelineRuns {
    /// Adds runs that have no directory at the moment.
    pub(crate) fn with(mut self, runs: impl Iterator<Item = PipelineId>) -> PipelineRuns {
        self.runs.extend(runs.filter_map(RunName::of));
        self.runs.sort_unstable();
        self.runs.dedup();
        self
    }
}

/// Lists the runs of a home; one that never had any has none.
pub(crate) fn list(disk: &dyn Disk, layout: &Layout) -> io::Result<PipelineRuns> {
    let mut found = PipelineRuns::default();
    for entry in if_exists(disk.list(&layout.runs()))?.unwrap_or_default() {
        match run_of(&entry) {
            Some(name) => found.runs.push(name),
            None => found.foreign.push(entry.name),
        }
    }
    found.runs.sort_unstable();
    found.foreign.sort_unstable();
    Ok(found)
}

/// Returns the run that an entry of `runs/` is the directory of.
pub(crate) fn run_of(entry: &Entry) -> Option<RunName> {
    entry.name.parse().ok().filter(|_| entry.kind == EntryKind::Dir)
}
