//! What a session has in its worktree, as a difference: everything since it parted from the directory that it was made for, committed
//! or not. The repository is only read: what git has to write down for that goes into a directory that is removed again.

use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rekindle_domain::event::SessionWorktree;

use super::changes::uncommitted;
use super::merge::find_there;
use crate::workspaces::git::{GitError, done, git, output, run};
use crate::workspaces::{WorkspaceError, Workspaces, unusable};

/// The most bytes of a difference that are told.
const LARGEST: u64 = 1 << 20;

/// The most files that are told one by one.
const MOST_FILES: usize = 1000;

/// What a worktree has that its directory has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorktreeDiff {
    /// The commit that it is compared with.
    pub(crate) base: String,
    /// Commits behind that.
    pub(crate) commits: u64,
    /// Files that are not committed.
    pub(crate) uncommitted: u64,
    /// Files that differ.
    pub(crate) total: u64,
    /// Lines that came, in all of them.
    pub(crate) lines_added: u64,
    /// Lines that went.
    pub(crate) lines_removed: u64,
    /// The first of the files.
    pub(crate) files: Vec<FileDiff>,
    /// The difference itself, if that is wanted.
    pub(crate) text: Option<String>,
    /// There is more of it.
    pub(crate) is_cut: bool,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: String,
    /// Lines that came and went; none if it is no text.
    pub(crate) lines: Option<(u64, u64)>,
}

impl Workspaces {
    /// Compares a session's worktree with where it parted from its directory.
    pub(crate) fn diff_session_worktree(
        &self,
        worktree: &SessionWorktree,
        parted_at: Option<&str>,
        (scratch, with_text): (&Path, bool),
    ) -> Result<WorktreeDiff, WorkspaceError> {
        let directory = find_there(worktree)?;
        let base = parted_from(&directory, Path::new(&worktree.origin), parted_at)?;
        let range = format!("{base}..HEAD");
        let commits = output("count commits", git(&directory).args(["rev-list", "--count", &range]))?;
        let changed = uncommitted(&directory)?;
        if let Some(above) = scratch.parent() {
            self.make_directory(above).map_err(unusable(above))?;
        }
        let index = ScratchIndex::make(&directory, scratch)?;
        let mut diff = WorktreeDiff {
            commits: commits.parse().unwrap_or_default(),
            uncommitted: changed.len() as u64,
            total: 0,
            lines_added: 0,
            lines_removed: 0,
            files: Vec::new(),
            text: None,
            is_cut: false,
            base,
        };
        let compare = ["diff", "--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"];
        let told = run(index.git(&directory).args(compare).args(["--numstat", "-z", &diff.base]))?;
        done("compare files", &told)?;
        for file in String::from_utf8_lossy(&told.stdout).split('\0').filter_map(file_diff) {
            let (added, removed) = file.lines.unwrap_or_default();
            diff.total += 1;
            diff.lines_added += added;
            diff.lines_removed += removed;
            if diff.files.len() < MOST_FILES {
                diff.files.push(file);
            }
        }
        if with_text {
            let (text, is_cut) = beginning(index.git(&directory).args(compare).arg(&diff.base))?;
            (diff.text, diff.is_cut) = (Some(text), is_cut);
        }
        Ok(diff)
    }
}

/// Returns the commit at which a worktree and a directory parted: the last that both have, or where the worktree began.
fn parted_from(worktree: &Path, origin: &Path, parted_at: Option<&str>) -> Result<String, GitError> {
    let head = output("find HEAD", git(worktree).args(["rev-parse", "HEAD"]))?;
    let origin = run(git(origin).args(["rev-parse", "--verify", "--quiet", "HEAD"])).ok();
    let origin = origin.filter(|told| told.status.success());
    let origin = origin.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    let other = origin.or_else(|| parted_at.map(str::to_owned)).unwrap_or_else(|| head.clone());
    let both = run(git(worktree).args(["merge-base", &head, &other]))?;
    match (both.status.success(), parted_at) {
        (true, _) => Ok(String::from_utf8_lossy(&both.stdout).trim().to_owned()),
        // They have nothing in common any more.
        (false, began) => Ok(began.map_or(head, str::to_owned)),
    }
}

/// An index with everything that is in a worktree, which nobody else sees, with the objects that it needs.
struct ScratchIndex<'a> {
    place: &'a Path,
    objects: String,
}

impl<'a> ScratchIndex<'a> {
    fn make(directory: &Path, place: &'a Path) -> Result<ScratchIndex<'a>, WorkspaceError> {
        let asked = ["rev-parse", "--path-format=absolute", "--git-path", "objects", "--git-path", "index"];
        let paths = output("find its files", git(directory).args(asked))?;
        let (objects, index) = paths.split_once('\n').unwrap_or((&paths, ""));
        remove(place).map_err(unusable(place))?;
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).create(place).map_err(unusable(place))?;
        let made = ScratchIndex { place, objects: objects.to_owned() };
        builder.create(place.join("objects")).map_err(unusable(place))?;
        // A worktree in which nothing was ever added has none.
        if Path::new(index).exists() {
            fs::copy(index, place.join("index")).map_err(unusable(place))?;
        }
        done("read what is not committed", &run(made.git(directory).args(["add", "--all"]))?)?;
        Ok(made)
    }

    fn git(&self, directory: &Path) -> Command {
        let mut command = git(directory);
        command.env("GIT_INDEX_FILE", self.place.join("index"));
        command.env("GIT_OBJECT_DIRECTORY", self.place.join("objects"));
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        command
    }
}

impl Drop for ScratchIndex<'_> {
    fn drop(&mut self) {
        let _ = remove(self.place);
    }
}

/// Removes a directory, if it is there.
fn remove(directory: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a line of `git diff --numstat -z`.
fn file_diff(line: &str) -> Option<FileDiff> {
    let mut fields = line.splitn(3, '\t');
    let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
    Some(FileDiff { path: path.to_owned(), lines: added.parse().ok().zip(removed.parse().ok()) })
}

/// Returns the beginning of what a call says, in whole lines, and whether there is more.
fn beginning(command: &mut Command) -> Result<(String, bool), GitError> {
    let missing = |source| GitError::Missing { source };
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(missing)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // It ends by itself if nobody reads on.
        stdout.take(LARGEST + 1).read_to_end(&mut bytes).map_err(missing)?;
    }
    child.wait().map_err(missing)?;
    let is_cut = bytes.len() as u64 > LARGEST;
    if is_cut {
        bytes.truncate(LARGEST as usize);
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}

#[cfg(test)]
mod tests;
