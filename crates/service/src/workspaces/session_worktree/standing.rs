//! Where a worktree stands: its commit, and what is added for the next one. A merge that is refused puts that back after it has committed what
//! was left over. Whoever dies before that leaves a commit more, and nothing less.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::workspaces::git::{GitError, done, git, output, run};

/// A worktree's commit and its index.
pub(super) struct Standing {
    head: String,
    index: PathBuf,
    added: Option<Vec<u8>>,
}

impl Standing {
    /// Looks where a worktree stands.
    pub(super) fn of(directory: &Path) -> Result<Standing, GitError> {
        let asked = ["rev-parse", "HEAD", "--git-path", "index"];
        let told = output("find HEAD and its index", git(directory).args(asked))?;
        let (head, index) = told.split_once('\n').unwrap_or((&told, ""));
        let index = directory.join(index);
        let added = match fs::read(&index) {
            Ok(added) => Some(added),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(GitError::Io { path: index, source }),
        };
        Ok(Standing { head: head.to_owned(), index, added })
    }

    /// Has a worktree stand there again; its files are left as they are.
    pub(super) fn put_back(&self, directory: &Path) {
        let back = || {
            done("go back", &run(git(directory).args(["reset", "-q", "--soft", &self.head]))?)?;
            let Some(added) = &self.added else { return Ok(()) };
            // As git writes it: whoever has this file is the only one to change the other.
            let lock = self.index.with_extension("lock");
            let written = fs::write(&lock, added).and_then(|()| fs::rename(&lock, &self.index));
            written.map_err(|source| GitError::Io { path: self.index.clone(), source })
        };
        if let Err(error) = back() {
            tracing::warn!("what was left over in {} stays committed: {error}", directory.display());
        }
    }
}
