//! Worktrees that sessions still work in: a note that the session is gone which one was made for says nothing of those that took its
//! place, or that were forked there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;
use rekindle_store::Want;
use rekindle_store::offline::Offline;

/// The users of worktrees, among the sessions of a home.
pub(super) struct WorktreeUsers {
    /// Directories of worktrees whose owners are here.
    owned: HashSet<String>,
    /// Where sessions work that were not ended.
    places: Vec<(PathBuf, SessionId)>,
}

impl WorktreeUsers {
    /// Looks for them; none if that cannot be told of every session.
    pub(super) fn find(offline: &Offline) -> Option<WorktreeUsers> {
        let mut users = WorktreeUsers { owned: HashSet::new(), places: Vec::new() };
        for session in offline.sessions().ok()? {
            let state = offline.load(session, Want::Status).ok()?.state;
            if state.deleted {
                continue;
            }
            users.owned.extend(state.owned_worktree().map(|worktree| worktree.wanted.directory.clone()));
            if !state.closed {
                users.places.push((PathBuf::from(&state.working_dir), session));
            }
        }
        Some(users)
    }

    /// Tells whether the worktree at a directory has an owner.
    pub(super) fn have_owner(&self, directory: &str) -> bool {
        self.owned.contains(directory)
    }

    /// Returns a session that works in a directory, or below it.
    pub(super) fn works_in(&self, directory: &Path) -> Option<SessionId> {
        let found = self.places.iter().find(|(place, _)| place.starts_with(directory));
        found.map(|(_, session)| *session)
    }
}
