//! What a worktree has that is nowhere else: files that are not committed, commits that no branch but its own has, and work inside its
//! submodules, whose repositories go with the worktree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::lock_file::LockFile;
use crate::workspaces::git::{GitError, done, git, git_with_umask, output, run};

/// Paths that an error names.
const NAMED: usize = 3;

/// Files of git that say that something was begun in a worktree and not finished, and what.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// Who commits, if git knows nobody.
const OURSELVES: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Rekindle"),
    ("GIT_AUTHOR_EMAIL", "rekindle@localhost"),
    ("GIT_COMMITTER_NAME", "Rekindle"),
    ("GIT_COMMITTER_EMAIL", "rekindle@localhost"),
];

/// Returns the paths in the worktree around a directory that are not as they were committed, from its root on, but for those that git
/// ignores.
pub(crate) fn uncommitted(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let told = status(directory)?;
    // Two letters and a space, then the path.
    let paths = told.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

/// Tells whether files that were committed are missing at most: nothing was changed, nothing added, and nothing staged.
pub(super) fn misses_files_at_most(directory: &Path) -> Result<bool, GitError> {
    let told = status(directory)?;
    Ok(told.split(|byte| *byte == 0).all(|entry| entry.is_empty() || entry.starts_with(b" D ")))
}

fn status(directory: &Path) -> Result<Vec<u8>, GitError> {
    let asked = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"];
    let told = run(git(directory).args(asked).arg("--ignore-submodules=untracked"))?;
    done("tell what is not committed", &told)?;
    Ok(told.stdout)
}

/// Names the first of some paths, and how many more there are.
pub(crate) fn first_of(paths: &[PathBuf]) -> String {
    let first: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// What of a repository goes with a worktree.
#[derive(Clone, Copy)]
pub(super) struct Going<'a> {
    /// A directory of the repository.
    pub(super) place: &'a Path,
    /// What the worktree stands at.
    pub(super) head: Option<&'a str>,
    /// A branch that goes too.
    pub(super) branch: Option<&'a str>,
}

impl Going<'_> {
    /// Returns what names commits to git that no branch and no tag has any more then.
    pub(super) fn only_there(&self) -> Vec<String> {
        let own = self.branch.map(|branch| format!("refs/heads/{branch}"));
        let but_own = self.branch.map(|branch| format!("--exclude={branch}"));
        let elsewhere = ["--branches", "--remotes", "--tags"].map(str::to_owned);
        let not = ["--not".to_owned()].into_iter().chain(but_own).chain(elsewhere);
        self.head.map(str::to_owned).into_iter().chain(own).chain(not).collect()
    }
}

/// Counts the commits that no branch and no tag would have any more.
pub(super) fn count_unmerged(going: &Going<'_>) -> Result<u64, GitError> {
    if going.head.is_none() && going.branch.is_none() {
        return Ok(0);
    }
    let mut command = git(going.place);
    command.args(["rev-list", "--count"]).args(going.only_there());
    let counted = output("count commits", &mut command)?;
    // What cannot be counted is not known to be safe.
    Ok(counted.trim().parse().unwrap_or(u64::MAX))
}

/// Checks that nothing was begun in a worktree that has to be finished or given up before it can be committed.
pub(super) fn check_finished(directory: &Path) -> Result<(), GitError> {
    let mut command = git(directory);
    command.args(["rev-parse", "--path-format=absolute"]);
    for (file, _) in UNFINISHED {
        command.args(["--git-path", file]);
    }
    let paths = output("find its files", &mut command)?;
    let begun = paths.lines().zip(UNFINISHED).find(|(path, _)| Path::new(path).exists());
    match begun {
        Some((_, (_, what))) => Err(GitError::Unfinished { what, directory: directory.to_owned() }),
        None => Ok(()),
    }
}

/// Checks that the repositories inside a worktree have nothing that would be lost with it: those of its submodules, and others that
/// somebody made there. Git cannot commit what is in them.
pub(super) fn check_inner_repositories(directory: &Path, changed: &[PathBuf]) -> Result<(), GitError> {
    let inner = |path: &Path| Err(GitError::InnerRepository { directory: directory.join(path) });
    // Git names a repository that it does not know with a slash behind it, and nothing in it.
    if let Some(unknown) = changed.iter().find(|path| path.as_os_str().as_bytes().ends_with(b"/")) {
        return inner(unknown);
    }
    let listed = run(git(directory).args(["ls-files", "-z", "--stage"]))?;
    done("list its submodules", &listed)?;
    let submodules = listed.stdout.split(|byte| *byte == 0).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        entry.starts_with(b"160000 ").then(|| Path::new(OsStr::from_bytes(&entry[tab + 1..])))
    });
    for submodule in submodules {
        let path = directory.join(submodule);
        if !path.join(".git").exists() {
            continue;
        }
        let ahead = ["rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes"];
        if !uncommitted(&path)?.is_empty() || !output("list commits", git(&path).args(ahead))?.is_empty() {
            return inner(submodule);
        }
    }
    Ok(())
}

/// Commits everything in a worktree that is not committed, but for what git ignores; tells whether there was anything.
pub(super) fn commit_all(
    directory: &Path,
    message: &str,
    umask: u32,
    lock: &LockFile,
) -> Result<bool, GitError> {
    if uncommitted(directory)?.is_empty() {
        return Ok(false);
    }
    check_finished(directory)?;
    done("add what is not committed", &run(git_with_umask(directory, umask, lock)?.args(["add", "--all"]))?)?;
    commit(directory, message, umask, lock)
}

/// Commits what is added in a worktree; tells whether there was anything: changes inside of submodules alone are nothing that can be
/// committed, and what somebody merged before is nothing new.
pub(super) fn commit(directory: &Path, message: &str, umask: u32, lock: &LockFile) -> Result<bool, GitError> {
    if run(git(directory).args(["diff", "--cached", "--quiet"]))?.status.success() {
        return Ok(false);
    }
    let mut command = git_with_umask(directory, umask, lock)?;
    command.envs(identity(directory)?.iter().copied());
    let words = ["commit", "--quiet", "--cleanup=verbatim", "--allow-empty-message", "-m", message];
    done("commit", &run(command.args(words))?)?;
    Ok(true)
}

/// Returns who commits where git does not know it: we do. Whoever has told git who they are is named.
pub(super) fn identity(directory: &Path) -> Result<&'static [(&'static str, &'static str)], GitError> {
    let is_known = run(git(directory).args(["var", "GIT_COMMITTER_IDENT"]))?.status.success();
    Ok(if is_known { &[] } else { &OURSELVES })
}
