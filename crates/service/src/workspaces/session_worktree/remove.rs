//! A session's worktree removed, with its branch if that was made for it. Whatever is in it and nowhere else keeps it, or goes into a
//! bundle first, from which git brings it back.

use std::path::{Path, PathBuf};

use rekindle_domain::event::SessionWorktree;
use rekindle_store::disk::OpenMode;

use super::add::{MADE, MAKING};
use super::changes::{
    Going, check_inner_repositories, commit_all, count_unmerged, first_of, misses_files_at_most, uncommitted,
};
use super::removal_bundle::{free_name, has_all, latest};
use crate::lock_file::LockFile;
use crate::test_knobs::crash_point;
use crate::workspaces::git::{GitError, done, git, run};
use crate::workspaces::git_worktree::{ListedWorktree, find_listed};
use crate::workspaces::{WorkspaceError, Workspaces, unusable};

/// How the lock of a worktree begins once everything in it is saved; behind it stands the commit that is its newest then.
const REMOVING: &str = "Rekindle is removing it, saved up to ";

/// The beginning of the names of branches that are made for sessions, and go with their worktrees.
const OWN: &str = "rekindle/";

/// A removal that is asked for.
pub(crate) struct Removal<'a> {
    pub(crate) worktree: &'a SessionWorktree,
    /// What the commit says that is made of files that are not committed.
    pub(crate) message: &'a str,
    pub(crate) umask: u32,
    /// Where what is nowhere else goes; without it that keeps the worktree.
    pub(crate) bundle: Option<&'a Path>,
}

/// What came of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removed {
    /// The branch is still there: it was not made for the worktree.
    pub(crate) keeps_branch: bool,
    /// What was nowhere else, if there was anything.
    pub(crate) bundle: Option<PathBuf>,
}

impl Workspaces {
    /// Removes a session's worktree. One that is gone already is no obstacle.
    pub(crate) fn remove_session_worktree(&self, removal: &Removal<'_>) -> Result<Removed, WorkspaceError> {
        let wanted = removal.worktree;
        let (repository, directory) = (Path::new(&wanted.repository), Path::new(&wanted.directory));
        let lock = self.lock_restore(directory)?;
        let found = find_listed(repository, |listed| listed.directory == directory)?;
        let branch = own_branch(wanted)?;
        let is_saved = found.as_ref().map_or(Ok(false), is_saved)?;
        if !is_saved {
            self.save(removal, found.as_ref(), branch, &lock)?;
        }
        let bundle = removal.bundle.and_then(latest);
        if let Some(found) = found {
            if !is_saved {
                set_lock(repository, &found, directory)?;
            }
            crash_point("rm.before_remove");
            let remove = ["worktree", "remove", "--force", "--force", &wanted.directory];
            done("remove a worktree", &run(git(repository).args(remove))?)?;
        }
        crash_point("rm.after_remove");
        if let Some(branch) = branch {
            done("remove a branch", &run(git(repository).args(["branch", "--quiet", "-D", branch]))?)?;
        }
        crash_point("rm.after_branch");
        Ok(Removed { keeps_branch: !wanted.branch.starts_with(OWN), bundle })
    }

    /// Checks that a worktree could go without anything being lost. Reads only.
    pub(crate) fn check_saved(&self, worktree: &SessionWorktree) -> Result<(), WorkspaceError> {
        let directory = Path::new(&worktree.directory);
        let found = find_listed(Path::new(&worktree.repository), |listed| listed.directory == directory)?;
        if found.as_ref().map_or(Ok(false), is_saved)? {
            return Ok(());
        }
        let contents = Contents::of(worktree, found.as_ref(), own_branch(worktree)?)?;
        contents.check_saved().map_err(Into::into)
    }

    /// Sees to it that nothing of a worktree is nowhere else, or says what is.
    fn save(
        &self,
        removal: &Removal<'_>,
        found: Option<&ListedWorktree>,
        branch: Option<&str>,
        lock: &LockFile,
    ) -> Result<(), WorkspaceError> {
        let contents = Contents::of(removal.worktree, found, branch)?;
        let Err(unsaved) = contents.check_saved() else { return Ok(()) };
        let Some(bundle) = removal.bundle else { return Err(unsaved.into()) };
        let mut going = contents.going;
        if contents.is_there {
            commit_all(contents.directory, removal.message, removal.umask, lock)?;
        } else {
            // A bundle has names only, and a commit that only a lost HEAD knew has none.
            if count_unmerged(&Going { branch: None, ..going })? > 0 {
                return Err(unsaved.into());
            }
            going.head = None;
        }
        crash_point("rm.after_commit");
        // It may be on a branch by now that stays.
        if count_unmerged(&going)? == 0 {
            return Ok(());
        }
        // What an earlier removal saved may be nowhere else either, if somebody worked on here after it was cut short.
        if !latest(bundle).map_or(Ok(false), |bundle| has_all(&bundle, &going))? {
            self.write_bundle(&going, &free_name(bundle))?;
        }
        crash_point("rm.after_bundle");
        Ok(())
    }

    /// Writes commits that are nowhere else into a file, durably, and under its name only when it is whole.
    fn write_bundle(&self, going: &Going<'_>, bundle: &Path) -> Result<(), WorkspaceError> {
        let above = bundle.parent().unwrap_or(bundle);
        self.make_directory(above).map_err(unusable(above))?;
        let partial = bundle.with_extension("partial");
        let name = partial.to_string_lossy();
        let mut create = git(going.place);
        create.args(["bundle", "create", "--quiet", &*name]).args(going.only_there());
        done("save commits in a bundle", &run(&mut create)?)?;
        done("read a bundle", &run(git(going.place).args(["bundle", "verify", "--quiet", &*name]))?)?;
        let keep = || {
            self.disk.open(&partial, OpenMode::Read)?.sync()?;
            self.disk.rename(&partial, bundle)?;
            self.disk.sync_dir(above)
        };
        keep().map_err(unusable(bundle))
    }
}

/// What a worktree has that would be nowhere else any more.
struct Contents<'a> {
    directory: &'a Path,
    /// Its directory is there.
    is_there: bool,
    going: Going<'a>,
    /// Files that are not committed.
    changed: Vec<PathBuf>,
    /// Commits that no other branch has.
    unmerged: u64,
}

impl<'a> Contents<'a> {
    /// Looks at a worktree: refused if somebody locked it, or if repositories in it have something that nobody can save from outside.
    fn of(
        worktree: &'a SessionWorktree,
        found: Option<&'a ListedWorktree>,
        branch: Option<&'a str>,
    ) -> Result<Contents<'a>, GitError> {
        let directory = Path::new(&worktree.directory);
        let lock = found.and_then(|found| found.lock.as_deref());
        if let Some(reason) = lock.filter(|reason| !is_own_lock(reason)) {
            let reason = if reason.is_empty() { "no reason is given" } else { reason }.to_owned();
            return Err(GitError::Locked { directory: directory.to_owned(), reason });
        }
        let is_there = found.is_some() && directory.join(".git").exists();
        // Without its directory there is still its branch, and what HEAD stood at.
        let going = match is_there {
            true => Going { place: directory, head: Some("HEAD"), branch },
            false => {
                let head = found.and_then(|found| found.head.as_deref());
                Going { place: Path::new(&worktree.repository), head, branch }
            }
        };
        let mut changed = Vec::new();
        if is_there {
            changed = uncommitted(directory)?;
            check_inner_repositories(directory, &changed)?;
        }
        Ok(Contents { directory, is_there, going, changed, unmerged: count_unmerged(&going)? })
    }

    /// Says what is nowhere else, if anything is.
    fn check_saved(&self) -> Result<(), GitError> {
        let commits = match self.unmerged {
            0 => None,
            1 => Some("a commit that no other branch has".to_owned()),
            more => Some(format!("{more} commits that no other branch has")),
        };
        let files = (!self.changed.is_empty()).then(|| format!("not committed: {}", first_of(&self.changed)));
        let what: Vec<String> = commits.into_iter().chain(files).collect();
        match what.is_empty() {
            true => Ok(()),
            false => Err(GitError::Unsaved { directory: self.directory.to_owned(), what: what.join("; ") }),
        }
    }
}

/// Returns the branch of a worktree that goes with it: there, and made for it.
fn own_branch(worktree: &SessionWorktree) -> Result<Option<&str>, GitError> {
    let Some(branch) = worktree.branch.starts_with(OWN).then_some(&*worktree.branch) else { return Ok(None) };
    let reference = format!("refs/heads/{branch}");
    let asked = ["show-ref", "--verify", "--quiet", &reference];
    let told = run(git(Path::new(&worktree.repository)).args(asked))?;
    Ok(told.status.success().then_some(branch))
}

/// Tells whether a lock is ours: one that somebody else put on says that the worktree must stay.
fn is_own_lock(reason: &str) -> bool {
    [MAKING, MADE].contains(&reason) || reason.starts_with(REMOVING)
}

/// Tells whether everything in a worktree was saved by a removal that was cut short, and nobody has worked in it since: files may be
/// missing, and nothing else is another.
fn is_saved(found: &ListedWorktree) -> Result<bool, GitError> {
    let saved = found.lock.as_deref().and_then(|lock| lock.strip_prefix(REMOVING));
    if saved.is_none() || saved != Some(found.head.as_deref().unwrap_or_default()) {
        return Ok(false);
    }
    // Without that file nobody can have committed anything, and git cannot say more.
    if !found.directory.join(".git").exists() { Ok(true) } else { misses_files_at_most(&found.directory) }
}

/// Says in the lock of a worktree that everything in it is saved, and up to which commit.
fn set_lock(repository: &Path, found: &ListedWorktree, directory: &Path) -> Result<(), GitError> {
    // What was not committed may be by now.
    let now = find_listed(repository, |listed| listed.directory == directory)?;
    let head = now.and_then(|now| now.head).unwrap_or_default();
    let directory = directory.to_string_lossy();
    if found.lock.is_some() {
        done("unlock a worktree", &run(git(repository).args(["worktree", "unlock", &*directory]))?)?;
    }
    let reason = format!("{REMOVING}{head}");
    let lock = ["worktree", "lock", "--reason", &*reason, &*directory];
    done("lock a worktree", &run(git(repository).args(lock))?)
}

#[cfg(test)]
mod tests;
