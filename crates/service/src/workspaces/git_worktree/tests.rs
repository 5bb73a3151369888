//! Worktrees of real repositories, made with the git that is here.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::workspaces::git::GitRepository;
use crate::workspaces::test_repository::{TestRepository, text};

/// A repository with two commits, and a home.
struct Lab(TestRepository);

impl Lab {
    /// Makes one, or nothing if there is no git.
    fn new() -> Option<Lab> {
        let repository = TestRepository::new()?;
        for text in ["first", "second"] {
            repository.write("below/file", text);
            repository.commit(text);
        }
        Some(Lab(repository))
    }

    fn wanted(&self) -> GitWorktree {
        GitWorktree {
            repository: text(&self.0.root().join(".git")),
            directory: text(&self.0.root().with_file_name("repo-1")),
            commit: self.0.git(&["rev-parse", "HEAD~"]),
        }
    }

    fn add(&self, wanted: &GitWorktree) -> Result<(), WorkspaceError> {
        self.0.workspaces.add_worktree(wanted, &Path::new(&wanted.directory).join("below/and/deeper"), 0o022)
    }
}

#[test]
fn a_worktree_is_made_once_and_made_anew_if_git_was_cut_short() {
    let Some(lab) = Lab::new() else { return };
    // Nothing of the repository's is run.
    let hook = lab.0.root().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().expect("a directory")).expect("made");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").expect("written");
    fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a mode");
    let wanted = lab.wanted();
    let directory = Path::new(&wanted.directory);
    let file = directory.join("below/file");
    lab.add(&wanted).expect("made");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "first");
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o644);
    assert!(directory.join("below/and/deeper").is_dir());
    let found = GitRepository::around(&directory.join("below")).expect("a repository");
    assert_eq!(
        (found.common.clone(), found.below.as_path()),
        (lab.0.root().join(".git"), Path::new("below"))
    );
    assert_eq!(found.main_directory(), lab.0.root());
    // Whoever comes after a crash finds it, and leaves what is in it.
    fs::write(&file, "mine").expect("written");
    lab.add(&wanted).expect("there");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine");
    // Git says itself what it has not finished.
    fs::write(lab.0.root().join(".git/worktrees/repo-1/locked"), "initializing").expect("written");
    fs::remove_file(&file).expect("removed");
    lab.add(&wanted).expect("made anew");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "first");
    // Somebody removed it without telling git.
    fs::remove_dir_all(directory).expect("removed");
    lab.add(&wanted).expect("made anew");
    assert!(file.exists());
    assert_eq!(lab.0.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 2);
}

#[test]
fn what_git_cannot_do_is_said_and_nothing_is_touched() {
    let Some(lab) = Lab::new() else { return };
    let outside = GitRepository::around(&lab.0.place()).expect_err("no repository");
    assert!(matches!(outside, GitError::NotRepository { .. }), "{outside}");
    assert!(outside.to_string().contains("not a git repository"), "{outside}");
    let repository = GitRepository::around(&lab.0.root()).expect("a repository");
    repository.find_commit(&lab.0.git(&["rev-parse", "HEAD"])).expect("there");
    for gone in [&"0".repeat(40), "main", "--help", ""] {
        let missing = repository.find_commit(gone).expect_err("not there");
        assert!(matches!(missing, GitError::CommitMissing { .. }), "{missing}");
    }
    // Something else is at its place by now.
    let wanted = lab.wanted();
    let directory = Path::new(&wanted.directory);
    fs::create_dir(directory).expect("made");
    fs::write(directory.join("mine"), "mine").expect("written");
    let refused = lab.add(&wanted).expect_err("it is taken");
    assert!(matches!(refused, WorkspaceError::Git(GitError::Failed { .. })), "{refused}");
    assert!(refused.to_string().contains("already exists"), "{refused}");
    assert_eq!(fs::read_to_string(directory.join("mine")).expect("a file"), "mine");
    // Git of a daemon that is dead by now still works there.
    fs::remove_dir_all(directory).expect("removed");
    let lock = lab.0.workspaces.lock_restore(directory).expect("nobody has it");
    assert!(matches!(lab.add(&wanted), Err(WorkspaceError::Restoring { .. })));
    drop(lock);
    lab.add(&wanted).expect("made");
}
