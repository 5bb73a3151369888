//! The worktree of a new session, or of a task: where it is made and on which branch. Whatever speaks against it is said before
//! anything is recorded; it is made behind the record, by the session's worker, when that has something to do.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rekindle_domain::event::{DirtyPolicy, SessionWorktree};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::NewWorktree;

use super::working_directory::unusable;
use crate::error::{Result, ServiceError};
use crate::show::Views;
use crate::workspaces::GitError;
use crate::workspaces::git::GitRepository;
use crate::workspaces::session_worktree::add::find_start;

/// Digits of an id that name a worktree and its branch: its last ones, which no two have in common.
const SHORT: usize = 8;

/// Characters of a title in the name of a branch.
const SLUG: usize = 40;

/// The most characters of the name of a branch or a commit.
const LONGEST_NAME: usize = 200;

/// A worktree that is to be made.
pub(crate) struct Planned {
    pub(crate) worktree: SessionWorktree,
    /// Where the agent works in it: at the same place as in the repository.
    pub(crate) working_dir: String,
}

/// Plans worktrees, for one request: what git says of a repository is asked once, however many of them are wanted there.
pub(crate) struct WorktreePlanner<'a> {
    views: &'a Views,
    repositories: HashMap<String, GitRepository>,
    /// Where new branches may begin, as far as that was asked.
    begun: HashSet<(String, Option<String>, DirtyPolicy)>,
}

impl WorktreePlanner<'_> {
    pub(crate) fn new(views: &Views) -> WorktreePlanner<'_> {
        WorktreePlanner { views, repositories: HashMap::new(), begun: HashSet::new() }
    }

    /// Plans the worktree of a session, or of a task, with this id, unless something speaks against it.
    pub(crate) fn plan(
        &mut self,
        origin: &str,
        new: &NewWorktree,
        (title, id): (&str, &str),
    ) -> Result<Planned> {
        check_names(new)?;
        if !self.repositories.contains_key(origin) {
            let found = GitRepository::around(Path::new(origin)).map_err(impossible)?;
            self.repositories.insert(origin.to_owned(), found);
        }
        let repository = &self.repositories[origin];
        let short = &id[id.len().saturating_sub(SHORT)..];
        let name = repository.main_directory().file_name().unwrap_or_default().to_string_lossy();
        let directory = make_place(&self.views.worktrees)?.join(format!("{name}-{short}"));
        let text = |path: &Path| match path.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(unusable(&path.to_string_lossy(), "its path is not valid UTF-8")),
        };
        let planned = Planned {
            working_dir: text(&directory.join(&repository.below).components().collect::<PathBuf>())?,
            worktree: SessionWorktree {
                origin: origin.to_owned(),
                repository: text(&repository.common)?,
                directory: text(&directory)?,
                branch: new.branch.clone().unwrap_or_else(|| branch_name(title, short)),
                base: new.base.clone(),
                dirty: new.dirty,
            },
        };
        // A branch that we name is new, so what speaks against one speaks against all of them.
        let begin = (origin.to_owned(), new.base.clone(), new.dirty);
        if new.branch.is_some() || !self.begun.contains(&begin) {
            find_start(&planned.worktree).map_err(impossible)?;
            self.begun.insert(begin);
        }
        Ok(planned)
    }
}

/// Refuses names that are too long for anything.
fn check_names(new: &NewWorktree) -> Result<()> {
    let is_name = |name: &&String| (1..=LONGEST_NAME).contains(&name.len());
    let shown = |name: &String| name.chars().take(SLUG).collect::<String>();
    match (&new.branch, &new.base) {
        (Some(branch), _) if !is_name(&branch) => {
            Err(impossible(GitError::BadBranch { branch: shown(branch) }))
        }
        (_, Some(base)) if !is_name(&base) => Err(impossible(GitError::NoSuchCommit { name: shown(base) })),
        _ => Ok(()),
    }
}

/// Makes the directory that worktrees are made in; returns the path that git will know it by.
fn make_place(place: &Path) -> Result<PathBuf> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place);
    made.and_then(|()| place.canonicalize())
        .map_err(|error| unusable(&place.to_string_lossy(), &error.to_string()))
}

/// Returns a branch that is named like a title and an id.
fn branch_name(title: &str, short: &str) -> String {
    let words = title.split(|one: char| !one.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG {
            break;
        }
        slug.push_str(&word.to_ascii_lowercase());
        slug.push('-');
    }
    format!("rekindle/{slug}{short}")
}

fn impossible(error: GitError) -> ServiceError {
    let (code, hint) = match &error {
        GitError::Missing { .. } => (Code::GitMissing, Hint::WorkInPlace),
        GitError::Uncommitted { .. } => (Code::WorktreeImpossible, Hint::CommitOrCarry),
        GitError::BranchInUse { .. } | GitError::BranchExists { .. } | GitError::BadBranch { .. } => {
            (Code::WorktreeImpossible, Hint::NameOtherBranch)
        }
        GitError::OtherCommit { .. } => (Code::WorktreeImpossible, Hint::CarryFromHead),
        _ => (Code::WorktreeImpossible, Hint::WorkInPlace),
    };
    ServiceError::caused_by(code, error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_like_its_task() {
        assert_eq!(branch_name("Fix the flaky test!", "2c9d4e7f"), "rekindle/fix-the-flaky-test-2c9d4e7f");
        assert_eq!(branch_name("", "2c9d4e7f"), "rekindle/2c9d4e7f");
        assert_eq!(branch_name("Überprüfe ../x", "1"), "rekindle/berpr-fe-x-1");
        let long = "word ".repeat(40);
        assert!(branch_name(&long, "2c9d4e7f").len() <= "rekindle/".len() + SLUG + SHORT);
    }
}
