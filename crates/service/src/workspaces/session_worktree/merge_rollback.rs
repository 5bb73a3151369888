//! Rollback of a refused merge: the worktree's commit and index as they were before what was left over was committed. Whoever dies before it
//! leaves a commit more, and nothing less.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::test_knobs::crash_point;
use crate::workspaces::git::{GitError, done, git, output, run};

/// A worktree's commit and its index, as a rollback puts them back.
pub(super) struct MergeRollback {
    head: String,
    index: PathBuf,
    added: Option<Vec<u8>>,
}

impl MergeRollback {
    /// Keeps what a worktree has now.
    pub(super) fn prepare(directory: &Path) -> Result<MergeRollback, GitError> {
        let asked = ["rev-parse", "HEAD", "--git-path", "index"];
        let told = output("find HEAD and its index", git(directory).args(asked))?;
        let (head, index) = told.split_once('\n').unwrap_or((&told, ""));
        let index = directory.join(index);
        let added = match fs::read(&index) {
            Ok(added) => Some(added),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(GitError::Io { path: index, source }),
        };
        Ok(MergeRollback { head: head.to_owned(), index, added })
    }

    /// Puts that back; files are left as they are.
    pub(super) fn roll_back(&self, directory: &Path) {
        let back = || {
            done("go back", &run(git(directory).args(["reset", "-q", "--soft", &self.head]))?)?;
            let Some(added) = &self.added else { return Ok(()) };
            crash_point("merge.after_reset");
            // Not by the name of git's own lock: one that a crash left there would keep everybody out.
            let renewed = self.index.with_extension("rekindle");
            let written = fs::write(&renewed, added).and_then(|()| fs::rename(&renewed, &self.index));
            written.map_err(|source| GitError::Io { path: self.index.clone(), source })
        };
        if let Err(error) = back() {
            tracing::warn!("leftover changes in {} stay committed: {error}", directory.display());
        }
    }
}
