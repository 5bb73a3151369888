//! The files of one session, taken together.

use std::io;
use std::path::PathBuf;

use rekindle_domain::id::SessionId;

use crate::crash_report;
use crate::disk::{Disk, if_exists, temporary};
use crate::layout::Layout;

/// Removes everything of a session, its log last, durably. Running it again finishes what was left.
///
/// The log goes last because it holds the decision: as long as it stands, a restart knows what to finish.
pub(crate) fn remove(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<()> {
    crash_report::remove(disk, layout, session)?;
    for file in every_file(disk, layout, session)? {
        if_exists(disk.remove_file(&file))?;
    }
    if_exists(disk.remove_dir(&layout.history(session)))?;
    disk.sync_dir(&layout.sessions())
}

/// Returns every file a session may have, its log last; those of its history are there, the others may be.
pub(crate) fn every_file(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<Vec<PathBuf>> {
    let history = layout.history(session);
    let kept = if_exists(disk.list(&history))?.unwrap_or_default();
    let mut every: Vec<PathBuf> = kept.into_iter().map(|entry| history.join(entry.name)).collect();
    let files = [
        layout.snapshot(session),
        layout.tokens(session),
        layout.damage_note(session),
        layout.base(session),
        layout.log(session),
    ];
    // What a crash left of rewriting one of them is a copy of it, and goes first.
    every.extend(files.iter().map(|file| temporary(file)));
    every.extend(files);
    Ok(every)
}
