//! Worktrees of sessions for tests: a repository with one commit, and a home.

use std::fs;
use std::path::Path;

use rekindle_domain::event::{DirtyPolicy, SessionWorktree};

use super::add::Added;
use super::prepare::{Preparation, Surroundings};
use crate::workspaces::WorkspaceError;
use crate::workspaces::git_worktree::find_listed;
use crate::workspaces::test_repository::{TestRepository, text};

/// A repository with one commit, and a home.
pub(super) struct Lab(pub(super) TestRepository);

impl Lab {
    /// Makes one, or nothing if there is no git.
    pub(super) fn new() -> Option<Lab> {
        let repository = TestRepository::new()?;
        repository.write("below/file", "first");
        repository.write("gone", "first");
        repository.write("folder/inside", "first");
        repository.write(".gitignore", "*.log");
        repository.commit("first");
        Some(Lab(repository))
    }

    pub(super) fn wanted(&self, name: &str, dirty: DirtyPolicy) -> SessionWorktree {
        SessionWorktree {
            origin: text(&self.0.root().join("below")),
            repository: text(&self.0.root().join(".git")),
            directory: text(&self.0.place().join("trees").join(name)),
            branch: format!("rekindle/{name}"),
            base: None,
            dirty,
        }
    }

    pub(super) fn add(&self, wanted: &SessionWorktree) -> Result<Added, WorkspaceError> {
        self.add_prepared(wanted, &Path::new(&wanted.directory).join("below"), &Preparation::default())
    }

    pub(super) fn read(&self, wanted: &SessionWorktree, path: &str) -> Option<String> {
        fs::read_to_string(Path::new(&wanted.directory).join(path)).ok()
    }

    pub(super) fn lock_of(&self, wanted: &SessionWorktree) -> Option<String> {
        let directory = Path::new(&wanted.directory);
        let found = find_listed(&self.0.root(), |listed| listed.directory == directory);
        found.expect("listed").and_then(|found| found.lock)
    }

    /// Writes a file in a worktree.
    pub(super) fn write(&self, wanted: &SessionWorktree, path: &str, text: &str) {
        let path = Path::new(&wanted.directory).join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// Runs git in a worktree.
    pub(super) fn git(&self, wanted: &SessionWorktree, arguments: &[&str]) -> String {
        self.0.try_git(Path::new(&wanted.directory), arguments).expect("git does it")
    }

    /// Commits everything in a worktree.
    pub(super) fn commit(&self, wanted: &SessionWorktree, message: &str) {
        self.git(wanted, &["add", "--all"]);
        self.git(wanted, &["commit", "-qm", message]);
    }

    /// Makes a worktree with a directory in it, prepared.
    pub(super) fn add_prepared(
        &self,
        wanted: &SessionWorktree,
        root: &Path,
        preparation: &Preparation,
    ) -> Result<Added, WorkspaceError> {
        let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        let around = Surroundings { env: &env, umask: 0o022, is_stopping: &|| false };
        self.0.workspaces.add_session_worktree(wanted, root, preparation, &around)
    }
}
