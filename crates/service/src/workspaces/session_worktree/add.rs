//! A session's worktree made: on a branch, locked so that nothing prunes it, with the submodules and, if that is wanted, with what
//! is not committed where it was asked for. Until all of that is there its lock says so: whoever finds it like that makes it anew,
//! since nobody has worked in it yet.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;

use rekindle_domain::event::{DirtyPolicy, SessionWorktree, WorktreeSetup};
use rekindle_workspace::restore::{DirRoot, Root};

use super::changes::{first_of, uncommitted};
use super::prepare::{Preparation, Surroundings, copy_ignored, run_setup};
use crate::lock_file::LockFile;
use crate::test_knobs::crash_point;
use crate::workspaces::git::{GitError, GitRepository, done, git, git_with_umask, run, run_with_input};
use crate::workspaces::git_worktree::{ListedWorktree, find_listed};
use crate::workspaces::{WorkspaceError, Workspaces, unusable};

/// What the lock of a worktree says while it is being made, and from then on.
pub(super) const MAKING: &str = "Rekindle is making it";
pub(super) const MADE: &str = "a session of Rekindle works here";

/// A worktree that is there, and whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Where its branch stood.
    pub commit: String,
    /// Changes that were copied.
    pub carried: u64,
    /// Files that git ignores that were copied.
    pub copied: u64,
    /// The command that was run in it, and what it said.
    pub setup: Option<WorktreeSetup>,
}

/// The place where a worktree begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    commit: String,
    /// Its branch is to be made.
    is_new: bool,
    /// Paths below the root of the worktree it is asked for in that are not as they were committed, if that matters.
    changes: Vec<PathBuf>,
}

/// Finds where a worktree begins, or what speaks against it. Reads only.
pub(crate) fn find_start(wanted: &SessionWorktree) -> Result<Start, GitError> {
    let origin = Path::new(&wanted.origin);
    let branch = || wanted.branch.clone();
    let reference = format!("refs/heads/{}", wanted.branch);
    let base = wanted.base.as_deref();
    // Three questions that have nothing to do with each other, so git is asked at the same time.
    let (is_name, commits, changes) = std::thread::scope(|scope| {
        let is_name = scope.spawn(|| is_branch_name(origin, &wanted.branch));
        let changes = scope.spawn(|| match wanted.dirty {
            DirtyPolicy::Ignore => Ok(Vec::new()),
            DirtyPolicy::Refuse | DirtyPolicy::Carry => uncommitted(origin),
        });
        let commits = commits_of(origin, ["HEAD", &reference, base.unwrap_or("HEAD")]);
        (joined(is_name), commits, joined(changes))
    });
    if !is_name? {
        return Err(GitError::BadBranch { branch: branch() });
    }
    let [head, existing, based] = commits?;
    let head = head.ok_or_else(|| GitError::NoCommit { directory: origin.to_owned() })?;
    let base = match (base, based) {
        (None, _) => None,
        (Some(_), Some(commit)) => Some(commit),
        (Some(name), None) => return Err(GitError::NoSuchCommit { name: name.to_owned() }),
    };
    if existing.is_some() {
        if base.is_some() && base != existing {
            return Err(GitError::BranchExists { branch: branch() });
        }
        let in_use = |listed: &ListedWorktree| listed.branch.as_deref() == Some(&wanted.branch);
        if let Some(other) = find_listed(Path::new(&wanted.repository), in_use)? {
            return Err(GitError::BranchInUse { branch: branch(), directory: other.directory });
        }
    }
    let is_new = existing.is_none();
    let commit = existing.or(base).unwrap_or_else(|| head.clone());
    let changes = changes?;
    match wanted.dirty {
        DirtyPolicy::Refuse if !changes.is_empty() => {
            // Its paths are seen from the root.
            let directory = GitRepository::around(origin)?.top;
            Err(GitError::Uncommitted { directory, paths: first_of(&changes) })
        }
        DirtyPolicy::Carry if !changes.is_empty() && commit != head => {
            Err(GitError::OtherCommit { directory: origin.to_owned() })
        }
        _ => Ok(Start { commit, is_new, changes }),
    }
}

/// Returns what a thread found.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the commits that names stand for.
fn commits_of<const N: usize>(directory: &Path, names: [&str; N]) -> Result<[Option<String>; N], GitError> {
    let asked = names.map(|name| format!("{}^{{commit}}\n", name.replace(char::is_control, "?"))).concat();
    let mut command = git(directory);
    command.args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]);
    let told = run_with_input(&mut command, asked.as_bytes())?;
    done("find commits", &told)?;
    let text = String::from_utf8_lossy(&told.stdout);
    let mut lines = text.lines().map(|line| line.strip_suffix(" commit").map(str::to_owned));
    Ok(names.map(|_| lines.next().flatten()))
}

/// Tells whether git takes a name for a branch, and for nothing else.
fn is_branch_name(directory: &Path, name: &str) -> Result<bool, GitError> {
    if name.starts_with('-') || name.contains("@{") || name == "HEAD" {
        return Ok(false);
    }
    let reference = format!("refs/heads/{name}");
    Ok(run(git(directory).args(["check-ref-format", &reference]))?.status.success())
}

impl Workspaces {
    /// Makes the worktree of a session, with its directory in it, durably; one that is there, and whole, is left as it is.
    pub fn add_session_worktree(
        &self,
        wanted: &SessionWorktree,
        root: &Path,
        preparation: &Preparation,
        around: &Surroundings<'_>,
    ) -> Result<Added, WorkspaceError> {
        let umask = around.umask;
        let (repository, directory) = (Path::new(&wanted.repository), Path::new(&wanted.directory));
        if let Some(above) = directory.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(unusable(above))?;
        }
        let lock = self.lock_restore(directory)?;
        match find_listed(repository, |listed| listed.directory == directory)? {
            Some(found) if found.is_cut_short(MAKING) => {
                let remove = ["worktree", "remove", "--force", "--force", &wanted.directory];
                done("remove a worktree that was cut short", &run(git(repository).args(remove))?)?;
            }
            Some(found) => {
                let commit = found.head.unwrap_or_default();
                return Ok(Added { commit, carried: 0, copied: 0, setup: None });
            }
            None => {}
        }
        let start = find_start(wanted)?;
        add(wanted, &start, umask, &lock)?;
        crash_point("worktree.after_add");
        add_submodules(directory, umask, &lock)?;
        let mut copied = 0;
        if wanted.dirty == DirtyPolicy::Carry || !preparation.copy.is_empty() {
            let top = GitRepository::around(Path::new(&wanted.origin))?.top;
            carry(&top, directory, &start.changes)
                .map_err(|source| GitError::Io { path: directory.to_owned(), source })?;
            copied = copy_ignored(&top, directory, &preparation.copy)?;
        }
        fs::create_dir_all(root).map_err(unusable(root))?;
        let log = self.layout.restore_lock(directory).with_extension("setup");
        let setup = run_setup(&preparation.setup, root, around, (&lock, &log))?;
        crash_point("worktree.after_setup");
        let made = DirRoot::open(directory).map_err(unusable(directory))?;
        made.sync_file_systems(&mut std::iter::empty()).map_err(unusable(directory))?;
        crash_point("worktree.before_lock");
        set_lock(directory).map_err(unusable(directory))?;
        Ok(Added { commit: start.commit, carried: start.changes.len() as u64, copied, setup })
    }
}

fn add(wanted: &SessionWorktree, start: &Start, umask: u32, lock: &LockFile) -> Result<(), GitError> {
    let mut command = git_with_umask(Path::new(&wanted.repository), umask, lock)?;
    // Quiet: one that outlives us would die of words that nobody reads any more.
    command.args(["worktree", "add", "--quiet", "--lock", "--reason", MAKING]);
    if start.is_new {
        command.args(["-b", &wanted.branch, &wanted.directory, &start.commit]);
    } else {
        command.args([&wanted.directory, &wanted.branch]);
    }
    done("make a worktree", &run(&mut command)?)
}

fn add_submodules(directory: &Path, umask: u32, lock: &LockFile) -> Result<(), GitError> {
    if !directory.join(".gitmodules").exists() {
        return Ok(());
    }
    let mut command = git_with_umask(directory, umask, lock)?;
    command.args(["submodule", "--quiet", "update", "--init", "--recursive"]);
    done("get its submodules", &run(&mut command)?)
}

/// Says in the lock of a worktree that it is whole: the file that git keeps for that is replaced, since two calls of git would leave it
/// without one in between.
fn set_lock(directory: &Path) -> io::Result<()> {
    let link = fs::read_to_string(directory.join(".git"))?;
    let private =
        link.strip_prefix("gitdir: ").ok_or_else(|| io::Error::other("it is not a git worktree"))?;
    let private = directory.join(private.trim_end_matches('\n'));
    let renewed = private.join("locked.new");
    fs::write(&renewed, format!("{MADE}\n"))?;
    fs::rename(&renewed, private.join("locked"))
}

/// Copies what is not committed from one worktree to another that stands at the same commit. What is gone goes there too, and goes
/// first: a directory may stand where a file was.
fn carry(from: &Path, to: &Path, paths: &[PathBuf]) -> io::Result<()> {
    let (here, gone): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().partition(|path| from.join(path).symlink_metadata().is_ok());
    for path in gone {
        remove(&to.join(path))?;
        // As git does it: no directory stays for nothing.
        for above in path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty()) {
            if fs::remove_dir(to.join(above)).is_err() {
                break;
            }
        }
    }
    for path in here {
        copy(from, to, path)?;
    }
    Ok(())
}

/// Copies a file or a link; what is neither, a repository in it for example, stays where it is.
fn copy(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let (source, target) = (from.join(path), to.join(path));
    let kind = source.symlink_metadata()?.file_type();
    if !kind.is_file() && !kind.is_symlink() {
        return Ok(());
    }
    let mut above: Vec<&Path> =
        path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    above.reverse();
    for above in above {
        let above = to.join(above);
        // Never through a link that was committed where a directory is now.
        if !above.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove(&above)?;
            fs::create_dir(&above)?;
        }
    }
    remove(&target)?;
    if kind.is_symlink() {
        return symlink(fs::read_link(&source)?, &target);
    }
    fs::copy(&source, &target).map(drop)
}

/// Removes a file or a link, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
