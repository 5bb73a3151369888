//! Worktrees of git. Git itself makes them. It holds the lock of the directory for as long
//! as it works, even if whoever started it is dead by then: his successor waits for it, and finds what it made.

use std::path::{Path, PathBuf};

use rekindle_domain::event::GitWorktree;
use rekindle_workspace::restore::{DirRoot, Root};

use super::git::{GitError, done, git, git_with_umask, run};
use super::{WorkspaceError, Workspaces, unusable};
use crate::lock_file::LockFile;

/// What git writes into the lock of a worktree that it is making.
const INITIALIZING: &str = "initializing";

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
    let directory = Path::new(&wanted.directory);
    let found = find_listed(Path::new(&wanted.repository), |listed| listed.directory == directory)?;
    Ok(match found {
        None => Found::Nothing,
        Some(found) if found.is_cut_short(INITIALIZING) => Found::CutShort,
        // Somebody removed it, and git does not know yet. If he locked it he had his reasons, which git will tell.
        Some(found) if !directory.exists() => {
            if found.lock.is_some() {
                Found::Nothing
            } else {
                Found::CutShort
            }
        }
        Some(_) => Found::Whole,
    })
}

/// A worktree as git lists it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListedWorktree {
    pub(super) directory: PathBuf,
    pub(super) head: Option<String>,
    pub(super) branch: Option<String>,
    /// Why it is locked, if it is.
    pub(super) lock: Option<String>,
}

impl ListedWorktree {
    /// Tells whether it is locked for as long as it is being made.
    pub(super) fn is_cut_short(&self, making: &str) -> bool {
        self.lock.as_deref().is_some_and(|lock| lock == making || lock == INITIALIZING)
    }
}

/// Finds a worktree of a repository.
pub(super) fn find_listed(
    repository: &Path,
    is_wanted: impl Fn(&ListedWorktree) -> bool,
) -> Result<Option<ListedWorktree>, GitError> {
    let listed = run(git(repository).args(["worktree", "list", "--porcelain", "-z"]))?;
    done("list its worktrees", &listed)?;
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text.split("\0\0").map(parse_worktree).find(is_wanted))
}

fn parse_worktree(entry: &str) -> ListedWorktree {
    let mut listed = ListedWorktree::default();
    for line in entry.split('\0') {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "worktree" => listed.directory = rest.into(),
            "HEAD" => listed.head = Some(rest.to_owned()),
            "branch" => listed.branch = Some(rest.trim_start_matches("refs/heads/").to_owned()),
            "locked" => listed.lock = Some(rest.to_owned()),
            _ => {}
        }
    }
    listed
}

fn add(wanted: &GitWorktree, umask: u32, lock: &LockFile) -> Result<(), GitError> {
    let mut command = git_with_umask(Path::new(&wanted.repository), umask, lock)?;
    // Quiet: one that outlives us would die of words that nobody reads any more.
    command.args(["worktree", "add", "--quiet", "--detach", &wanted.directory, &wanted.commit]);
    done("make a worktree", &run(&mut command)?)
}

#[cfg(test)]
mod tests;
