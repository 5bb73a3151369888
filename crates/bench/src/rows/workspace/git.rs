//! Git, for comparison: a repository beside the files, and nothing of anybody's configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// A repository whose files are in a directory that knows nothing of it.
pub(super) struct Git {
    repository: PathBuf,
    files: PathBuf,
}

impl Git {
    /// Makes an empty repository for the files of a directory.
    pub(super) fn new(repository: &Path, files: &Path) -> anyhow::Result<Git> {
        let git = Git { repository: repository.to_owned(), files: files.to_owned() };
        git.run(&["init", "-q"])?;
        git.run(&["config", "core.preloadIndex", "true"])?;
        git.run(&["config", "gc.auto", "0"])?;
        Ok(git)
    }

    /// Keeps everything, as a tree, and returns the tree's id.
    pub(super) fn write_tree(&self) -> anyhow::Result<String> {
        self.run(&["add", "-A"])?;
        Ok(self.run(&["write-tree"])?.trim().to_owned())
    }

    /// Looks what has changed.
    pub(super) fn status(&self) -> anyhow::Result<()> {
        self.run(&["status", "--porcelain"]).map(drop)
    }

    /// Keeps everything as a commit, and returns its id.
    pub(super) fn commit(&self) -> anyhow::Result<String> {
        let tree = self.write_tree()?;
        let commit = self.run(&["commit-tree", "-m", "measured", &tree])?.trim().to_owned();
        self.run(&["update-ref", "HEAD", &commit])?;
        Ok(commit)
    }

    /// Makes the files what a commit says.
    pub(super) fn checkout(&self, commit: &str) -> anyhow::Result<()> {
        self.run(&["checkout", "-q", "--detach", commit]).map(drop)
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new("git");
        command.env("GIT_DIR", &self.repository).env("GIT_WORK_TREE", &self.files).current_dir(&self.files);
        output(command.args(args))
    }
}

/// Puts the files that a repository's newest commit has into a new directory.
pub(super) fn export(repository: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let archive = to.with_extension("tar");
    let mut git = Command::new("git");
    output(git.current_dir(repository).args(["archive", "--format=tar", "-o"]).arg(&archive).arg("HEAD"))?;
    output(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(to))?;
    Ok(fs::remove_file(&archive)?)
}

/// Runs a program to its end and returns what it says.
fn output(command: &mut Command) -> anyhow::Result<String> {
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "bench").env(format!("GIT_{who}_EMAIL"), "bench@localhost");
    }
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
