//! The files of one session, taken together.

use std::io;

use rekindle_domain::id::SessionId;

use crate::disk::Disk;
use crate::layout::Layout;

/// Removes everything of a session, its log last, durably. Running it again finishes what was left.
///
/// The log goes last because it holds the decision: as long as it stands, a restart knows what to finish.
pub(crate) fn remove(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<()> {
    let history = layout.history(session);
    match disk.list(&history) {
        Ok(entries) => {
            for entry in entries {
                absent_is_fine(disk.remove_file(&history.join(entry.name)))?;
            }
            absent_is_fine(disk.remove_dir(&history))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    absent_is_fine(disk.remove_file(&layout.snapshot(session)))?;
    absent_is_fine(disk.remove_file(&layout.tokens(session)))?;
    absent_is_fine(disk.remove_file(&layout.damage_note(session)))?;
    absent_is_fine(disk.remove_file(&layout.log(session)))?;
    disk.sync_dir(&layout.sessions())
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
