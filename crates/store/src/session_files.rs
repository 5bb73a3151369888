//! The files of one session, taken together.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;

use crate::disk::Disk;
use crate::layout::{Layout, TEMPORARY_SUFFIX};

/// Removes everything of a session, its log last, durably. Running it again finishes what was left.
///
/// The log goes last because it holds the decision: as long as it stands, a restart knows what to finish.
pub(crate) fn remove(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<()> {
    for file in every_file(disk, layout, session)? {
        absent_is_fine(disk.remove_file(&file))?;
    }
    absent_is_fine(disk.remove_dir(&layout.history(session)))?;
    disk.sync_dir(&layout.sessions())
}

/// Returns every file a session may have, its log last; those of its history are there, the others may be.
pub(crate) fn every_file(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<Vec<PathBuf>> {
    let history = layout.history(session);
    let mut every = match disk.list(&history) {
        Ok(entries) => entries.into_iter().map(|entry| history.join(entry.name)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let files =
        [layout.snapshot(session), layout.tokens(session), layout.damage_note(session), layout.log(session)];
    // What a crash left of rewriting one of them is a copy of it, and goes first.
    every.extend(files.iter().map(|file| temporary(file)));
    every.extend(files);
    Ok(every)
}

/// Returns the name under which a file is written before it gets its own.
pub(crate) fn temporary(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    name.into()
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
