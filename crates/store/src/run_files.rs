//! The files of one run of a pipeline, taken together: what may be removed of one that has ended. A run whose ledger is not compressed
//! goes on, or is about to, and is left alone.

use std::io;

use rekindle_domain::id::PipelineId;

use crate::disk::{Disk, EntryKind, if_exists, temporary};
use crate::layout::{Layout, TEMPORARY_SUFFIX};

/// What became of a run that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRemoval {
    /// It is gone.
    Gone,
    /// It is there: somebody reopens it.
    InUse,
    /// There are files in its directory that are none of ours.
    Foreign(String),
}

/// Tells whether a directory has what a removal left of a run that was cut short, or a start that came to nothing, and no ledger.
pub fn is_leftover(disk: &dyn Disk, layout: &Layout, run: PipelineId) -> io::Result<bool> {
    let entries = if_exists(disk.list(&layout.run(run)))?;
    let temporary = |name: &str| name.ends_with(TEMPORARY_SUFFIX);
    Ok(entries
        .is_some_and(|entries| !entries.is_empty() && entries.iter().all(|entry| temporary(&entry.name))))
}

/// Removes a run that has ended; doing it again finishes what was cut short.
///
/// The ledger goes first, by another name: whoever reopens the run at this moment has it, and it stays, or finds none. What is left then
/// stands for nothing, and nobody takes a run without its ledger for one.
pub fn remove(disk: &dyn Disk, layout: &Layout, run: PipelineId) -> io::Result<RunRemoval> {
    let directory = layout.run(run);
    let Some(compressed) = layout.compressed_log(run.into()) else { return Ok(RunRemoval::InUse) };
    let (ledger, summary) = (layout.ledger(run), layout.run_summary(run));
    let Some(entries) = if_exists(disk.list(&directory))? else { return Ok(RunRemoval::Gone) };
    let ours = |name: &str| {
        let path = directory.join(name);
        path == compressed || path == summary || name.ends_with(TEMPORARY_SUFFIX)
    };
    if entries.iter().any(|entry| directory.join(&entry.name) == ledger) {
        return Ok(RunRemoval::InUse);
    }
    if let Some(foreign) = entries.iter().find(|entry| entry.kind != EntryKind::File || !ours(&entry.name)) {
        return Ok(RunRemoval::Foreign(foreign.name.clone()));
    }
    // It is made again from a ledger that is there; without one it would seem to be lost.
    if_exists(disk.remove_file(&summary))?;
    disk.sync_dir(&directory)?;
    let taken = temporary(&compressed);
    if_exists(disk.rename(&compressed, &taken))?;
    if if_exists(disk.stat(&ledger))?.is_some() {
        if_exists(disk.remove_file(&taken))?;
        return Ok(RunRemoval::InUse);
    }
    disk.sync_dir(&directory)?;
    for entry in disk.list(&directory)?.iter().filter(|entry| entry.name.ends_with(TEMPORARY_SUFFIX)) {
        if_exists(disk.remove_file(&directory.join(&entry.name)))?;
    }
    match disk.remove_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(RunRemoval::InUse),
        removed => drop(if_exists(removed)?),
    }
    disk.sync_dir(&layout.runs())?;
    Ok(RunRemoval::Gone)
}
