//! The git worktree of a fork: where it is made and at which commit. Whatever speaks against it is said before anything is recorded;
//! it is made behind the record, by the fork's worker, so that whoever dies leaves nothing that nobody knows of.

use std::path::{Path, PathBuf};

use rekindle_domain::event::{GitState, GitWorktree};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::NewFork;

use super::directory::make;
use crate::commands::open_runs::refuse_open_runs;
use crate::commands::working_directory::unusable;
use crate::error::{Result, ServiceError};
use crate::show::Views;
use crate::workspaces::GitError;
use crate::workspaces::git::GitRepository;

/// Digits of a session's id that name its worktree: as many as lists show.
const SHORT: usize = 10;

/// A worktree that is to be made.
pub(super) struct Planned {
    pub(super) worktree: GitWorktree,
    /// Where the agent works in it: at the same place as in the repository.
    pub(super) working_dir: String,
}

/// Plans the worktree of a fork, unless something speaks against it. `git` is where HEAD was at the cut.
pub(super) fn plan(
    views: &Views,
    parent: &SessionState,
    new: &NewFork,
    git: Option<&GitState>,
    fork: SessionId,
) -> Result<Planned> {
    let repository = GitRepository::around(Path::new(&parent.working_dir))?;
    let commit = git.and_then(|git| git.commit.as_deref()).ok_or_else(|| {
        let message = format!("{} had no git commit when the checkpoint was taken", parent.working_dir);
        ServiceError::new(Code::NotARepository, message).hint(Hint::RestoreWithoutGit)
    })?;
    repository.find_commit(commit)?;
    let directory = match &new.working_dir {
        Some(directory) => named(directory)?,
        None => beside(&repository, fork),
    };
    if !is_free(&directory) {
        let message =
            format!("{} already exists: a worktree is made in a new directory", directory.display());
        return Err(ServiceError::new(Code::DirectoryNotEmpty, message).hint(Hint::NameNewDirectory));
    }
    if !new.force {
        refuse_open_runs(views, &directory)?;
    }
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(unusable(&path.to_string_lossy(), "its path is not valid UTF-8")),
    };
    Ok(Planned {
        working_dir: text(&directory.join(&repository.below).components().collect::<PathBuf>())?,
        worktree: GitWorktree {
            repository: text(&repository.common)?,
            directory: text(&directory)?,
            commit: commit.to_owned(),
        },
    })
}

/// Returns the directory that somebody named, by the path that git will know it by; those above it are made.
fn named(directory: &str) -> Result<PathBuf> {
    let place = Path::new(directory);
    let (Some(above), Some(name), true) = (place.parent(), place.file_name(), place.is_absolute()) else {
        return Err(unusable(directory, "it is not the absolute path of a new directory"));
    };
    let above = make(above).and_then(|()| above.canonicalize());
    Ok(above.map_err(|error| unusable(directory, &error.to_string()))?.join(name))
}

/// Returns a directory beside a repository that is named like it and like the fork.
fn beside(repository: &GitRepository, fork: SessionId) -> PathBuf {
    let main = repository.main_directory();
    let name = main.file_name().unwrap_or_default().to_string_lossy();
    let id = fork.as_str().rsplit('_').next().unwrap_or_default();
    let short = main.with_file_name(format!("{name}-{}", id.get(..SHORT).unwrap_or(id)));
    // Two forks of one moment have the same first digits.
    if is_free(&short) { short } else { main.with_file_name(format!("{name}-{id}")) }
}

/// Tells whether git makes a worktree at a path: there is nothing, or an empty directory.
fn is_free(path: &Path) -> bool {
    match path.symlink_metadata() {
        Err(_) => true,
        Ok(found) => found.is_dir() && path.read_dir().is_ok_and(|mut entries| entries.next().is_none()),
    }
}

impl From<GitError> for ServiceError {
    fn from(error: GitError) -> ServiceError {
        let code = match &error {
            GitError::Missing { .. } => Code::GitMissing,
            GitError::NotRepository { .. } => Code::NotARepository,
            GitError::CommitMissing { .. } => Code::CommitMissing,
            GitError::Failed { .. } | GitError::Io { .. } => Code::Internal,
            _ => Code::WorktreeImpossible,
        };
        ServiceError::caused_by(code, error).hint(Hint::RestoreWithoutGit)
    }
}
