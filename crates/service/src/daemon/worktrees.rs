//! Worktrees of sessions, asked about through the daemon's door.

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::request::MergeWorktree;
use rekindle_wire::view::{WorktreeDiff, WorktreeMerged, WorktreeRemoved};

use super::Daemon;
use crate::commands::session_worktree::{self, Tools};
use crate::error::{Result, ServiceError};

impl Daemon {
    /// Says what a session's worktree has that its directory has not.
    pub fn diff_worktree(&self, id: SessionId, only_stat: bool) -> Result<WorktreeDiff> {
        self.entry(id)?;
        session_worktree::diff(&self.worktree_tools(), id, only_stat)
    }

    /// Brings a session's worktree into the directory that it was made for.
    pub fn merge_worktree(&self, id: SessionId, asked: &MergeWorktree, by: &str) -> Result<WorktreeMerged> {
        self.entry(id)?;
        session_worktree::merge(&self.worktree_tools(), id, asked, by)
    }

    /// Removes a session's worktree.
    pub fn remove_worktree(&self, id: SessionId, is_forced: bool, by: &str) -> Result<WorktreeRemoved> {
        self.entry(id)?;
        session_worktree::remove(&self.worktree_tools(), id, is_forced, by)
    }

    /// Notes the worktree of a session that is about to be removed: afterwards nothing is left that knows of it.
    pub(super) fn note_worktree(&self, state: &SessionState) -> Result<()> {
        // That of another session is not left: whoever took its place has it.
        let Some(worktree) = state.owned_worktree() else { return Ok(()) };
        let noted = self.workspaces.note_worktree(state.id, &worktree.wanted);
        noted.map_err(|error| ServiceError::caused_by(Code::Storage, error))
    }

    fn worktree_tools(&self) -> Tools<'_> {
        Tools { views: &self.views, workspaces: &self.workspaces, locks: &self.locks }
    }
}
