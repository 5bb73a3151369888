//! A session's worktree brought back into the directory that it was made for. What comes of it is put together in a worktree that
//! nobody looks at, so that a conflict touches neither side, and whoever dies leaves nothing but that. The directory then goes forward
//! to it in one step, which git refuses by itself if it would overwrite anything.

use std::path::{Path, PathBuf};
use std::process::Output;

use rekindle_domain::event::{MergeMethod, SessionWorktree};
use rekindle_workspace::restore::{DirRoot, Root};

use super::changes::{check_finished, commit, commit_all, first_of, identity};
use super::merge_rollback::MergeRollback;
use crate::lock_file::LockFile;
use crate::test_knobs::crash_point;
use crate::workspaces::git::{GitError, GitRepository, done, git, git_with_umask, output, run, said};
use crate::workspaces::git_worktree::find_listed;
use crate::workspaces::{WorkspaceError, Workspaces, unusable};

/// What the lock says of the worktree that a merge is put together in.
const MERGING: &str = "Rekindle is merging in it";

/// A merge that is asked for.
pub(crate) struct Merge<'a> {
    pub(crate) worktree: &'a SessionWorktree,
    /// What a commit says that the merge makes of files that are not committed, or of everything.
    pub(crate) message: &'a str,
    pub(crate) method: MergeMethod,
    pub(crate) umask: u32,
    /// Where it may be put together: a directory that is not there, or left of a merge that was cut short.
    pub(crate) scratch: &'a Path,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    /// The branch that has it now.
    pub(crate) into: String,
    /// Where that branch stands.
    pub(crate) commit: String,
    /// How many commits it gained: none if it had everything.
    pub(crate) commits: u64,
    /// Files that were not committed were committed first.
    pub(crate) committed: bool,
}

/// The two sides of a merge.
struct Sides<'a> {
    /// The root of the directory that goes forward.
    top: &'a Path,
    ours: String,
    theirs: String,
}

impl Workspaces {
    /// Brings what a session has in its worktree into the directory that it was made for.
    pub(crate) fn merge_session_worktree(&self, merge: &Merge<'_>) -> Result<Merged, WorkspaceError> {
        let directory = Path::new(&merge.worktree.directory);
        let top = GitRepository::around(Path::new(&merge.worktree.origin))?.top;
        let lock = self.lock_restore(&top)?;
        let theirs_lock = self.lock_restore(directory)?;
        let into = branch_of(&top)?;
        // Whatever is begun there would have to be finished by whoever began it.
        check_finished(&top)?;
        let theirs = find_there(merge.worktree)?;
        check_finished(&theirs)?;
        let rollback = MergeRollback::prepare(&theirs)?;
        let committed = commit_all(&theirs, merge.message, merge.umask, &theirs_lock)?;
        crash_point("merge.after_commit");
        let head = |directory: &Path| output("find HEAD", git(directory).args(["rev-parse", "HEAD"]));
        let sides = Sides { top: &top, ours: head(&top)?, theirs: head(&theirs)? };
        if is_ancestor(&top, &sides.theirs, &sides.ours)? {
            return Ok(Merged { into, commit: sides.ours, commits: 0, committed });
        }
        let forwarded = self.go_forward(merge, &sides, (&lock, &theirs_lock));
        if forwarded.is_err() && committed {
            crash_point("merge.before_rollback");
            rollback.roll_back(&theirs);
        }
        let commit = forwarded?;
        crash_point("merge.after_forward");
        let range = format!("{}..{commit}", sides.ours);
        let commits = output("count commits", git(&top).args(["rev-list", "--count", &range]))?;
        follow(&theirs, &commit, merge.umask, &theirs_lock);
        for root in [&top, &theirs] {
            let made = DirRoot::open(root).map_err(unusable(root))?;
            made.sync_file_systems(&mut std::iter::empty()).map_err(unusable(root))?;
        }
        Ok(Merged { into, commit, commits: commits.parse().unwrap_or_default(), committed })
    }

    /// Has the original go forward to both sides' work, or leaves it as it is; returns its new commit.
    fn go_forward(
        &self,
        merge: &Merge<'_>,
        sides: &Sides<'_>,
        (lock, theirs_lock): (&LockFile, &LockFile),
    ) -> Result<String, WorkspaceError> {
        let commit = self.put_together(merge, sides, theirs_lock)?;
        crash_point("merge.before_forward");
        let forward = ["merge", "--quiet", "--no-stat", "--ff-only", "--no-autostash", &commit];
        let told = run(git_with_umask(sides.top, merge.umask, lock)?.args(forward))?;
        match told.status.success() {
            true => Ok(commit),
            false => {
                Err(GitError::InTheWay { directory: sides.top.to_owned(), what: in_the_way(&told) }.into())
            }
        }
    }

    /// Makes the commit that a directory is to go forward to, without touching it.
    fn put_together(
        &self,
        merge: &Merge<'_>,
        sides: &Sides<'_>,
        lock: &LockFile,
    ) -> Result<String, WorkspaceError> {
        let goes_forward = is_ancestor(sides.top, &sides.ours, &sides.theirs)?;
        if goes_forward && merge.method != MergeMethod::Squash {
            return Ok(sides.theirs.clone());
        }
        let scratch = merge.scratch;
        if let Some(above) = scratch.parent() {
            self.make_directory(above).map_err(unusable(above))?;
        }
        remove_scratch(sides.top, scratch).map_err(unusable(scratch))?;
        let there = scratch.to_string_lossy();
        let mut add = git(sides.top);
        add.args(["worktree", "add", "--quiet", "--detach", "--lock", "--reason", MERGING]);
        done("make room for a merge", &run(add.args([&*there, &sides.ours]))?)?;
        crash_point("merge.after_scratch");
        let made = make_commit(merge, sides, lock);
        crash_point("merge.after_merge");
        // One that stays is removed by the next merge, or when the home is collected.
        if let Err(error) = remove_scratch(sides.top, scratch) {
            tracing::warn!("{} is left of a merge: {error}", scratch.display());
        }
        Ok(made?)
    }
}

/// Makes the commit of a merge, in the directory that is there for it.
fn make_commit(merge: &Merge<'_>, sides: &Sides<'_>, lock: &LockFile) -> Result<String, GitError> {
    let who = identity(merge.scratch)?;
    let attempt = |arguments: &[&str]| {
        let mut command = git_with_umask(merge.scratch, merge.umask, lock)?;
        let told = run(command.envs(who.iter().copied()).args(arguments))?;
        match (told.status.success(), conflicts(merge.scratch)?) {
            (true, _) => Ok(()),
            (false, paths) if paths.is_empty() => Err(GitError::Failed { doing: "merge", said: said(&told) }),
            (false, paths) => Err(GitError::Conflict { paths: first_of(&paths) }),
        }
    };
    match merge.method {
        MergeMethod::Merge => {
            let message = format!("Merge branch '{}'", merge.worktree.branch);
            attempt(&["merge", "--quiet", "--no-stat", "--no-edit", "-m", &message, &sides.theirs])?;
        }
        MergeMethod::Squash => {
            attempt(&["merge", "--quiet", "--no-stat", "--squash", &sides.theirs])?;
            commit(merge.scratch, merge.message, merge.umask, lock)?;
        }
        MergeMethod::Rebase => {
            attempt(&["checkout", "--quiet", "--detach", &sides.theirs])?;
            attempt(&["rebase", "--quiet", "--no-autostash", &sides.ours])?;
        }
    }
    output("find the merge", git(merge.scratch).args(["rev-parse", "HEAD"]))
}

/// Finds a session's worktree: made, and not removed since.
pub(super) fn find_there(worktree: &SessionWorktree) -> Result<PathBuf, GitError> {
    let directory = Path::new(&worktree.directory);
    let listed = find_listed(Path::new(&worktree.repository), |listed| listed.directory == directory)?;
    match listed {
        Some(listed) if listed.directory.join(".git").exists() => Ok(listed.directory),
        _ => Err(GitError::WorktreeMissing { directory: directory.to_owned() }),
    }
}

/// Returns the branch that a directory is at.
fn branch_of(directory: &Path) -> Result<String, GitError> {
    let told = run(git(directory).args(["symbolic-ref", "--quiet", "--short", "HEAD"]))?;
    if !told.status.success() {
        return Err(GitError::Detached { directory: directory.to_owned() });
    }
    Ok(String::from_utf8_lossy(&told.stdout).trim_end().to_owned())
}

fn is_ancestor(directory: &Path, before: &str, after: &str) -> Result<bool, GitError> {
    Ok(run(git(directory).args(["merge-base", "--is-ancestor", before, after]))?.status.success())
}

/// Returns the files that both sides changed.
fn conflicts(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let names = output("name conflicts", git(directory).args(["diff", "--name-only", "--diff-filter=U"]))?;
    Ok(names.lines().map(PathBuf::from).collect())
}

/// Returns the files that keep git from going forward, which it names on lines of their own; without any, what it says.
fn in_the_way(told: &Output) -> String {
    let text = String::from_utf8_lossy(&told.stderr);
    let paths: Vec<PathBuf> =
        text.lines().filter_map(|line| line.strip_prefix('\t')).map(PathBuf::from).collect();
    if paths.is_empty() { said(told) } else { first_of(&paths) }
}

/// Has a worktree stand where its work is now: what is done in it next is added to that. Its branch's reflog knows where it stood.
fn follow(directory: &Path, commit: &str, umask: u32, lock: &LockFile) {
    let reset = || {
        done("move", &run(git_with_umask(directory, umask, lock)?.args(["reset", "-q", "--keep", commit]))?)
    };
    if let Err(error) = reset() {
        tracing::warn!("{} stays where it was: {error}", directory.display());
    }
}

/// Removes the directory that a merge is put together in, and what git knows of it.
pub(crate) fn remove_scratch(repository: &Path, scratch: &Path) -> std::io::Result<()> {
    let there = scratch.to_string_lossy();
    // It fails where git knows nothing of it: then there is a directory at most.
    let _ = run(git(repository).args(["worktree", "remove", "--force", "--force", &*there]));
    match std::fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
