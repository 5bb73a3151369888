//! A real repository for tests, made with the git that is here, and a home beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_store::disk::RealDisk;
use rekindle_store::layout::Layout;

use super::Workspaces;
use super::git::git;

/// A repository without a commit yet, and a home.
pub(super) struct TestRepository {
    place: tempfile::TempDir,
    pub(super) workspaces: Workspaces,
}

impl TestRepository {
    /// Makes one, or nothing if there is no git.
    pub(super) fn new() -> Option<TestRepository> {
        let place = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(place.path().join("home"));
        fs::create_dir(layout.home()).expect("made");
        rekindle_store::home::prepare(&RealDisk, &layout).expect("a home");
        let made = TestRepository { place, workspaces: Workspaces::new(Arc::new(RealDisk), layout) };
        fs::create_dir(made.root()).expect("made");
        if made.try_git(&made.root(), &["init", "-q", "-b", "main"]).is_none() {
            eprintln!("no git here: not tested");
            return None;
        }
        Some(made)
    }

    /// Returns the directory that everything is in.
    pub(super) fn place(&self) -> PathBuf {
        self.place.path().canonicalize().expect("a path")
    }

    /// Returns the root of the repository.
    pub(super) fn root(&self) -> PathBuf {
        self.place().join("repo")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(super) fn commit(&self, message: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", message]);
    }

    /// Runs git in the repository; returns what it says.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.try_git(&self.root(), arguments).expect("git does it")
    }

    /// Runs git in a directory; none if it fails.
    pub(super) fn try_git(&self, directory: &Path, arguments: &[&str]) -> Option<String> {
        let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let told = git(directory).args(own).args(arguments).output().ok()?;
        told.status.success().then(|| String::from_utf8(told.stdout).expect("text").trim().to_owned())
    }
}

/// Returns a path as text.
pub(super) fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}
