//! Leftovers of worktrees: those whose sessions were removed. A note says of each what it was made for, written before the session's removal
//! is recorded, since nothing else is left that knows.

use std::io;
use std::path::PathBuf;

use rekindle_domain::event::SessionWorktree;
use rekindle_domain::id::SessionId;
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_store::layout::Layout;

use crate::workspaces::{WorkspaceError, Workspaces, unusable};

/// Largest note that is read: it has a few paths.
const MAX_NOTE: u64 = 1 << 16;

/// A worktree whose session was removed.
pub(crate) struct Leftover {
    pub(crate) session: SessionId,
    pub(crate) worktree: SessionWorktree,
    /// The note that says so.
    pub(crate) note: PathBuf,
}

impl Workspaces {
    /// Notes what a session's worktree was made for, before nobody knows any more.
    pub(crate) fn note_worktree(
        &self,
        session: SessionId,
        worktree: &SessionWorktree,
    ) -> Result<(), WorkspaceError> {
        let (directory, path) = (self.layout.removed_worktrees(), self.layout.worktree_note(session));
        self.make_directory(&directory).map_err(unusable(&directory))?;
        let write = || replace(&*self.disk, &path, &serde_json::to_vec(worktree)?);
        write().map_err(unusable(&path))
    }
}

/// Returns the worktrees of sessions that are not here any more. A note that cannot be read is passed over: what it is about stays.
pub(crate) fn leftovers(disk: &SharedDisk, layout: &Layout) -> io::Result<Vec<Leftover>> {
    let names = if_exists(disk.list(&layout.removed_worktrees()))?.unwrap_or_default();
    let sessions = names.iter().filter_map(|entry| entry.name.strip_suffix(".json")?.parse().ok());
    let gone = sessions.filter(|session: &SessionId| disk.stat(&layout.log(*session)).is_err());
    let leftover = |session: SessionId| {
        let note = layout.worktree_note(session);
        let bytes = read_all(&**disk, &note, MAX_NOTE).ok()?;
        Some(Leftover { session, worktree: serde_json::from_slice(&bytes).ok()?, note })
    };
    Ok(gone.filter_map(leftover).collect())
}
