//! Git, as it is called here: without hooks, without asking anybody, and about no repository but the one that is named.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
/// Nor is anything signed, since nobody is there who could be asked for the key.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "commit.gpgsign=false",
    "rerere.enabled=false",
];

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
    #[error("{} is not in a worktree of a git repository: {said}", directory.display())]
    NotRepository {
        /// The directory.
        directory: PathBuf,
        /// What git says.
        said: String,
    },
    /// A commit is not there.
    #[error("the commit {commit} is no longer in the repository")]
    CommitMissing {
        /// The commit.
        commit: String,
    },
    /// A repository has none yet.
    #[error("{} is in a repository that has no commit yet", directory.display())]
    NoCommit {
        /// A directory in it.
        directory: PathBuf,
    },
    /// A name stands for no commit.
    #[error("there is no commit {name}")]
    NoSuchCommit {
        /// The name.
        name: String,
    },
    /// A name is none for a branch.
    #[error("{branch} is not a valid branch name")]
    BadBranch {
        /// The name.
        branch: String,
    },
    /// A branch is there, and begins elsewhere.
    #[error("the branch {branch} already exists and starts elsewhere")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// A branch can be worked on in one worktree at a time.
    #[error("the branch {branch} is checked out in {}", directory.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// Where.
        directory: PathBuf,
    },
    /// Something is not committed, and would be missing.
    #[error("uncommitted changes in {} would be left out: {paths}", directory.display())]
    Uncommitted {
        /// Where.
        directory: PathBuf,
        /// What: the first of it, and how much more there is.
        paths: String,
    },
    /// What is not committed belongs to another commit.
    #[error("uncommitted changes in {} belong to the commit that is checked out there", directory.display())]
    OtherCommit {
        /// Where.
        directory: PathBuf,
    },
    /// A worktree is not there any more.
    #[error("the worktree {} no longer exists", directory.display())]
    WorktreeMissing {
        /// Where it was.
        directory: PathBuf,
    },
    /// Something was begun and not finished.
    #[error("a {what} was started in {} and not finished", directory.display())]
    Unfinished {
        /// What.
        what: &'static str,
        /// Where.
        directory: PathBuf,
    },
    /// A directory stands at a commit and at no branch.
    #[error("{} is not on a branch", directory.display())]
    Detached {
        /// The directory.
        directory: PathBuf,
    },
    /// Two branches changed the same place, each in its way.
    #[error("both sides changed {paths} in conflicting ways")]
    Conflict {
        /// Where: the first of the files, and how many more there are.
        paths: String,
    },
    /// Somebody changed what a merge would change.
    #[error("uncommitted changes in {} are in the way: {what}", directory.display())]
    InTheWay {
        /// Where.
        directory: PathBuf,
        /// Which files, or what git says.
        what: String,
    },
    /// A worktree has work that is nowhere else.
    #[error("{} has work that exists nowhere else: {what}", directory.display())]
    Unsaved {
        /// Where.
        directory: PathBuf,
        /// How much of what.
        what: String,
    },
    /// Somebody locked a worktree, so that nobody removes it.
    #[error("the worktree {} is locked: {reason}", directory.display())]
    Locked {
        /// Where.
        directory: PathBuf,
        /// What they say.
        reason: String,
    },
    /// A repository inside a worktree has work that cannot be saved from outside.
    #[error("the repository {} has changes or commits that exist nowhere else", directory.display())]
    InnerRepository {
        /// Where it is.
        directory: PathBuf,
    },
    /// It failed.
    #[error("git cannot {doing}: {said}")]
    Failed {
        /// What it was about to do.
        doing: &'static str,
        /// What it says.
        said: String,
    },
    /// The command failed that prepares worktrees.
    #[error("the setup of worktrees, `{command}`, failed: {why}")]
    SetupFailed {
        /// The command.
        command: String,
        /// How it ended, and the last line that it said.
        why: String,
    },
    /// We are leaving: the next daemon does it.
    #[error("the daemon is shutting down")]
    Stopped,
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
    pub(crate) top: PathBuf,
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
        let text =
            String::from_utf8(told.stdout).map_err(|_| not("its path is not valid UTF-8".to_owned()))?;
        let lines: Vec<&str> = text.split('\n').collect();
        match lines[..] {
            [top, common, below, ""] => {
                let below = below.trim_end_matches('/').into();
                Ok(GitRepository { common: common.into(), top: top.into(), below })
            }
            _ => Err(not("its path is not known".to_owned())),
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

/// Returns a call of git in a directory.
pub(super) fn git(directory: &Path) -> Command {
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

pub(super) fn run(command: &mut Command) -> Result<Output, GitError> {
    command.output().map_err(|source| GitError::Missing { source })
}

/// Runs a call that must succeed; returns what it says, without the end of its last line.
pub(super) fn output(doing: &'static str, command: &mut Command) -> Result<String, GitError> {
    let told = run(command)?;
    done(doing, &told)?;
    Ok(String::from_utf8_lossy(&told.stdout).trim_end_matches('\n').to_owned())
}

/// Runs a call with a few lines of input.
pub(super) fn run_with_input(command: &mut Command, input: &[u8]) -> Result<Output, GitError> {
    let missing = |source| GitError::Missing { source };
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended already says why.
        let _ = stdin.write_all(input);
    }
    child.wait_with_output().map_err(missing)
}

/// Returns a call of git in a directory whose files get the modes that they have everywhere: ours would keep everybody else out. It
/// shares a lock for as long as it works.
pub(super) fn git_with_umask(directory: &Path, umask: u32, lock: &LockFile) -> Result<Command, GitError> {
    let mut command = Command::new("sh");
    command.args(["-c", "umask \"$1\" && shift && exec \"$@\"", "sh", &format!("{umask:04o}")]);
    let git = git(directory);
    command.arg(git.get_program()).args(git.get_args());
    for (name, value) in git.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let shared = lock.share().map_err(|source| GitError::Io { path: directory.to_owned(), source })?;
    command.stdin(shared);
    Ok(command)
}

/// Tells whether a call did what it was to do.
pub(super) fn done(doing: &'static str, output: &Output) -> Result<(), GitError> {
    match output.status.success() {
        true => Ok(()),
        false => Err(GitError::Failed { doing, said: said(output) }),
    }
}

/// Returns what git says about a failure, in one line.
pub(super) fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = words.join("; ");
    said.chars().take(500).collect()
}
