//! Worktrees of git. Git itself makes them, without hooks and without asking anybody. It holds the lock of the directory for as long
//! as it works, even if whoever started it is dead by then: his successor waits for it, and finds what it made.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rekindle_domain::event::GitWorktree;
use rekindle_workspace::restore::{DirRoot, Root};

use super::{WorkspaceError, Workspaces, unusable};
use crate::lock_file::LockFile;

/// Variables by which a repository is told to git: ours are not meant for another one. As `git rev-parse --local-env-vars` has them.
const OF_REPOSITORY: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
];

/// Settings for every call: no program of the repository's is run but filters, and nothing that would outlive the call.
const SETTINGS: &[&str] =
    &["core.hooksPath=/dev/null", "core.fsmonitor=false", "maintenance.auto=false", "gc.auto=0"];

/// What git writes into the lock of a worktree that it is making.
const INITIALIZING: &str = "locked initializing";

/// Why git did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It is not installed.
    #[error("git cannot be run")]
    Missing {
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A directory is in no repository.
    #[error("{} is in no worktree of a git repository: {said}", directory.display())]
    NotRepository {
        /// The directory.
        directory: PathBuf,
        /// What git says.
        said: String,
    },
    /// A commit is not there.
    #[error("the commit {commit} is not in the repository any more")]
    CommitMissing {
        /// The commit.
        commit: String,
    },
    /// It failed.
    #[error("git cannot {doing}: {said}")]
    Failed {
        /// What it was about to do.
        doing: &'static str,
        /// What it says.
        said: String,
    },
    /// A file cannot be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A repository, seen from a directory in one of its worktrees.
#[derive(Debug)]
pub(crate) struct GitRepository {
    /// The git directory that all worktrees share.
    pub(crate) common: PathBuf,
    /// The root of the worktree.
    top: PathBuf,
    /// Where the directory is below that.
    pub(crate) below: PathBuf,
}

impl GitRepository {
    /// Finds the repository that a directory is in.
    pub(crate) fn around(directory: &Path) -> Result<GitRepository, GitError> {
        let asked = ["--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-prefix"];
        let mut command = git(directory);
        let told =
            command.arg("rev-parse").args(asked).output().map_err(|source| GitError::Missing { source })?;
        let not = |said: String| GitError::NotRepository { directory: directory.to_owned(), said };
        if !told.status.success() {
            return Err(not(said(&told)));
        }
        let text = String::from_utf8(told.stdout).map_err(|_| not("its path is no text".to_owned()))?;
        let lines: Vec<&str> = text.split('\n').collect();
        match lines[..] {
            [top, common, below, ""] => {
                let below = below.trim_end_matches('/').into();
                Ok(GitRepository { common: common.into(), top: top.into(), below })
            }
            _ => Err(not("its path cannot be told".to_owned())),
        }
    }

    /// Checks that a commit is there.
    pub(crate) fn find_commit(&self, commit: &str) -> Result<(), GitError> {
        // What a record says need not be a commit: no option, and no name that means another one tomorrow.
        let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let object = format!("{commit}^{{commit}}");
        let there = is_hash && run(git(&self.common).args(["cat-file", "-e", &object]))?.status.success();
        if there { Ok(()) } else { Err(GitError::CommitMissing { commit: commit.to_owned() }) }
    }

    /// Returns the directory that people know the repository by: that of its main worktree, or else of this one.
    pub(crate) fn main_directory(&self) -> &Path {
        match (self.common.file_name(), self.common.parent()) {
            (Some(name), Some(main)) if name == OsStr::new(".git") => main,
            _ => &self.top,
        }
    }
}

impl Workspaces {
    /// Makes a worktree, with a directory in it, durably. One that is there is left as it is; one that git was cut short in making is
    /// made anew.
    pub(crate) fn add_worktree(
        &self,
        wanted: &GitWorktree,
        root: &Path,
        umask: u32,
    ) -> Result<(), WorkspaceError> {
        let directory = Path::new(&wanted.directory);
        let lock = self.lock_restore(directory)?;
        match find_worktree(wanted)? {
            Found::Whole => {}
            Found::CutShort => {
                let remove = ["worktree", "remove", "--force", "--force", &wanted.directory];
                done(
                    "remove a worktree that was cut short",
                    &run(git(Path::new(&wanted.repository)).args(remove))?,
                )?;
                add(wanted, umask, &lock)?;
            }
            Found::Nothing => add(wanted, umask, &lock)?,
        }
        std::fs::create_dir_all(root).map_err(unusable(root))?;
        let made = DirRoot::open(directory).map_err(unusable(directory))?;
        made.sync_file_systems(&mut std::iter::empty()).map_err(unusable(directory))
    }
}

/// What is known of a worktree.
enum Found {
    Nothing,
    Whole,
    CutShort,
}

/// Looks whether a worktree is there.
fn find_worktree(wanted: &GitWorktree) -> Result<Found, GitError> {
    let listed = run(git(Path::new(&wanted.repository)).args(["worktree", "list", "--porcelain", "-z"]))?;
    done("list its worktrees", &listed)?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let name = format!("worktree {}", wanted.directory);
    let entry = text.split("\0\0").find(|entry| entry.split('\0').next() == Some(name.as_str()));
    Ok(match entry {
        None => Found::Nothing,
        Some(entry) if entry.split('\0').any(|line| line == INITIALIZING) => Found::CutShort,
        // Somebody removed it, and git does not know yet. If he locked it he had his reasons, which git will tell.
        Some(entry) if !Path::new(&wanted.directory).exists() => {
            if entry.contains("\0locked") {
                Found::Nothing
            } else {
                Found::CutShort
            }
        }
        Some(_) => Found::Whole,
    })
}

fn add(wanted: &GitWorktree, umask: u32, lock: &LockFile) -> Result<(), GitError> {
    // Files get the modes that they have everywhere: ours would keep everybody else out.
    let mut command = Command::new("sh");
    command.args(["-c", "umask \"$1\" && shift && exec \"$@\"", "sh", &format!("{umask:04o}")]);
    let git = git(Path::new(&wanted.repository));
    command.arg(git.get_program()).args(git.get_args());
    for (name, value) in git.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Quiet: one that outlives us would die of words that nobody reads any more.
    command.args(["worktree", "add", "--quiet", "--detach", &wanted.directory, &wanted.commit]);
    command.stdin(
        lock.share().map_err(|source| GitError::Io { path: wanted.directory.clone().into(), source })?,
    );
    done("make a worktree", &run(&mut command)?)
}

/// Returns a call of git in a directory.
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).stdin(Stdio::null());
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    for name in OF_REPOSITORY {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    command
}

fn run(command: &mut Command) -> Result<Output, GitError> {
    command.output().map_err(|source| GitError::Missing { source })
}

/// Tells whether a call did what it was to do.
fn done(doing: &'static str, output: &Output) -> Result<(), GitError> {
    match output.status.success() {
        true => Ok(()),
        false => Err(GitError::Failed { doing, said: said(output) }),
    }
}

/// Returns what git says about a failure, in one line.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = words.join("; ");
    said.chars().take(500).collect()
}

#[cfg(test)]
mod tests;
