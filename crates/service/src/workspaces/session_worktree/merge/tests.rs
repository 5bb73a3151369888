//! Merges of real worktrees.

use std::fs;

use rekindle_domain::event::DirtyPolicy;

use super::*;
use crate::workspaces::session_worktree::lab::Lab;
use crate::workspaces::test_repository::text;

/// A worktree that was made, and everything to merge it with.
struct Work {
    lab: Lab,
    worktree: SessionWorktree,
}

impl Work {
    fn new() -> Option<Work> {
        let lab = Lab::new()?;
        let worktree = lab.wanted("one", DirtyPolicy::Refuse);
        lab.add(&worktree).expect("made");
        Some(Work { lab, worktree })
    }

    fn scratch(&self) -> PathBuf {
        self.lab.0.place().join("home/merging/one")
    }

    fn merge(&self, method: MergeMethod) -> Result<Merged, WorkspaceError> {
        let (worktree, scratch) = (&self.worktree, self.scratch());
        let merge = Merge { worktree, message: "Fix it", method, umask: 0o022, scratch: &scratch };
        let merged = self.lab.0.workspaces.merge_session_worktree(&merge);
        assert!(!scratch.exists(), "nothing is left of it");
        merged
    }

    /// Everything that people see of both sides: files, changes, commits.
    fn seen(&self) -> Vec<String> {
        let root = self.lab.0.root();
        let both = [root.as_path(), Path::new(&self.worktree.directory)];
        let asked: [&[&str]; 3] = [&["status", "--porcelain", "--branch"], &["rev-parse", "HEAD"], &["diff"]];
        let seen = |at: &Path| asked.map(|asked| self.lab.0.try_git(at, asked).expect("git does it"));
        both.into_iter().flat_map(seen).collect()
    }

    fn messages(&self) -> Vec<String> {
        self.lab.0.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    fn in_original(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.lab.0.root().join(path)).ok()
    }
}

#[test]
fn leftovers_are_committed_and_the_original_goes_forward() {
    let Some(work) = Work::new() else { return };
    work.lab.write(&work.worktree, "below/file", "done");
    work.lab.commit(&work.worktree, "by the agent");
    work.lab.write(&work.worktree, "new", "not committed");
    work.lab.write(&work.worktree, "some.log", "ignored");
    // What the original has of its own and what nobody else touched stays as it is.
    work.lab.0.write("gone", "edited by a person");
    let merged = work.merge(MergeMethod::Merge).expect("merged");
    assert_eq!((&*merged.into, merged.commits, merged.committed), ("main", 2, true));
    assert_eq!(work.messages(), ["Fix it", "by the agent", "first"]);
    assert_eq!(work.in_original("new").as_deref(), Some("not committed"));
    assert_eq!(work.in_original("below/file").as_deref(), Some("done"));
    assert_eq!(
        (work.in_original("gone").as_deref(), work.in_original("some.log")),
        (Some("edited by a person"), None)
    );
    // Once more there is nothing to do.
    let again = work.merge(MergeMethod::Merge).expect("merged");
    assert_eq!((again.commits, again.committed, again.commit), (0, false, merged.commit));
    // And what is done next comes on top.
    work.lab.write(&work.worktree, "new", "more");
    assert_eq!(work.merge(MergeMethod::Rebase).expect("merged").commits, 1);
    assert_eq!(work.in_original("new").as_deref(), Some("more"));
}

#[test]
fn two_branches_become_one_in_each_way() {
    for (method, messages) in [
        (
            MergeMethod::Merge,
            vec!["Merge branch 'rekindle/one'", "by a person", "second", "by the agent", "first"],
        ),
        (MergeMethod::Rebase, vec!["second", "by the agent", "by a person", "first"]),
        (MergeMethod::Squash, vec!["Fix it", "by a person", "first"]),
    ] {
        let Some(work) = Work::new() else { return };
        work.lab.write(&work.worktree, "below/file", "done");
        work.lab.commit(&work.worktree, "by the agent");
        work.lab.write(&work.worktree, "two", "done");
        work.lab.commit(&work.worktree, "second");
        work.lab.0.write("other", "by a person");
        work.lab.0.commit("by a person");
        let merged = work.merge(method).expect("merged");
        let mut sorted = work.messages();
        if method == MergeMethod::Merge {
            // All were made within a second: git tells them in any order.
            sorted[1..].sort();
            assert_eq!(sorted[0], messages[0]);
        } else {
            assert_eq!(sorted, messages, "{method:?}");
        }
        assert_eq!(sorted.len(), messages.len());
        assert_eq!(merged.commits as usize, messages.len() - 2, "{method:?}");
        assert_eq!(work.in_original("two").as_deref(), Some("done"));
        // Its worktree stands there too: nothing in it is nowhere else.
        assert_eq!(work.lab.git(&work.worktree, &["rev-parse", "HEAD"]), merged.commit);
        assert_eq!(work.lab.git(&work.worktree, &["branch", "--show-current"]), "rekindle/one");
        assert_eq!(work.merge(method).expect("merged").commits, 0);
        assert_eq!(work.lab.0.git(&["worktree", "list"]).lines().count(), 2);
    }
}

#[test]
fn a_conflict_leaves_both_sides_as_they_were() {
    for method in MergeMethod::ALL {
        let Some(work) = Work::new() else { return };
        work.lab.write(&work.worktree, "below/file", "by the agent");
        work.lab.commit(&work.worktree, "by the agent");
        work.lab.0.write("below/file", "by a person");
        work.lab.0.commit("by a person");
        work.lab.0.write("gone", "not committed");
        // What the agent has not committed is as it was too: what is added, and what is not.
        work.lab.write(&work.worktree, "added", "one");
        work.lab.git(&work.worktree, &["add", "added"]);
        work.lab.write(&work.worktree, "added", "two");
        work.lab.write(&work.worktree, "new", "not added");
        let before = work.seen();
        assert_eq!(work.lab.git(&work.worktree, &["status", "--porcelain"]), "AM added\n?? new");
        let error = work.merge(method).expect_err("a conflict").to_string();
        assert_eq!(error, "both sides changed below/file in conflicting ways", "{method:?}");
        assert_eq!(work.seen(), before, "{method:?}");
    }
}

#[test]
fn what_one_side_removed_and_the_other_changed_is_a_conflict_too() {
    let Some(work) = Work::new() else { return };
    work.lab.git(&work.worktree, &["rm", "-q", "below/file"]);
    work.lab.0.write("below/file", "by a person");
    work.lab.0.commit("by a person");
    let before = work.seen();
    let error = work.merge(MergeMethod::Merge).expect_err("a conflict").to_string();
    assert!(error.starts_with("both sides changed below/file"), "{error}");
    assert_eq!(work.seen(), before);
}

#[test]
fn what_a_merge_would_overwrite_is_not_overwritten() {
    let Some(work) = Work::new() else { return };
    work.lab.write(&work.worktree, "below/file", "by the agent");
    work.lab.write(&work.worktree, "new", "by the agent");
    work.lab.commit(&work.worktree, "by the agent");
    work.lab.0.write("below/file", "not committed");
    let before = work.seen();
    let error = work.merge(MergeMethod::Merge).expect_err("in the way").to_string();
    assert!(error.ends_with("are in the way: below/file"), "{error}");
    assert_eq!(work.seen(), before);
    // A file that git does not know is no less worth.
    work.lab.0.git(&["checkout", "-q", "below/file"]);
    work.lab.0.write("new", "a person's");
    let error = work.merge(MergeMethod::Squash).expect_err("in the way").to_string();
    assert!(error.ends_with("are in the way: new"), "{error}");
    assert_eq!(work.in_original("new").as_deref(), Some("a person's"));
}

#[test]
fn what_is_begun_and_not_finished_is_left_alone() {
    let Some(work) = Work::new() else { return };
    let merge = || work.merge(MergeMethod::Merge).expect_err("refused").to_string();
    work.lab.0.git(&["checkout", "-q", "--detach"]);
    assert!(merge().ends_with("repo is not on a branch"));
    work.lab.0.git(&["checkout", "-q", "main"]);
    // The agent left a merge with conflicts: nobody commits the marks of those.
    work.lab.0.git(&["branch", "other"]);
    work.lab.write(&work.worktree, "below/file", "one");
    work.lab.commit(&work.worktree, "one");
    work.lab.git(&work.worktree, &["checkout", "-q", "other"]);
    work.lab.write(&work.worktree, "below/file", "two");
    work.lab.commit(&work.worktree, "two");
    work.lab.git(&work.worktree, &["checkout", "-q", "rekindle/one"]);
    assert_eq!(work.lab.0.try_git(Path::new(&work.worktree.directory), &["merge", "other"]), None);
    assert!(merge().starts_with("a merge was started in"));
    work.lab.git(&work.worktree, &["merge", "--abort"]);
    work.merge(MergeMethod::Merge).expect("merged");
    work.lab.git(&work.worktree, &["worktree", "unlock", &work.worktree.directory]);
    fs::remove_dir_all(&work.worktree.directory).expect("removed");
    assert!(merge().ends_with("no longer exists"));
}

#[test]
fn one_that_was_cut_short_is_made_again() {
    let Some(work) = Work::new() else { return };
    work.lab.write(&work.worktree, "below/file", "done");
    work.lab.commit(&work.worktree, "by the agent");
    work.lab.0.write("other", "by a person");
    work.lab.0.commit("by a person");
    // Somebody died in the middle: with a directory that git knows, then with one that it does not.
    fs::create_dir_all(work.scratch().parent().expect("a directory")).expect("made");
    work.lab.0.git(&["worktree", "add", "-q", "--detach", "--lock", &text(&work.scratch())]);
    work.merge(MergeMethod::Merge).expect("merged");
    work.lab.write(&work.worktree, "below/file", "more");
    work.lab.0.write("other", "more");
    work.lab.0.commit("more");
    fs::create_dir_all(work.scratch().join("half")).expect("made");
    work.merge(MergeMethod::Merge).expect("merged");
    assert_eq!(work.in_original("below/file").as_deref(), Some("more"));
}

#[test]
fn one_that_was_merged_and_not_followed_is_not_merged_twice() {
    for method in [MergeMethod::Squash, MergeMethod::Rebase] {
        let Some(work) = Work::new() else { return };
        work.lab.write(&work.worktree, "below/file", "done");
        work.lab.commit(&work.worktree, "by the agent");
        let stood = work.lab.git(&work.worktree, &["rev-parse", "HEAD"]);
        work.lab.0.write("other", "by a person");
        work.lab.0.commit("by a person");
        let merged = work.merge(method).expect("merged");
        // Whoever dies right behind it leaves the worktree where it stood.
        work.lab.git(&work.worktree, &["reset", "-q", "--hard", &stood]);
        let again = work.merge(method).expect("merged");
        assert_eq!((again.commits, &again.commit), (0, &merged.commit), "{method:?}");
        assert_eq!(work.lab.git(&work.worktree, &["rev-parse", "HEAD"]), merged.commit, "{method:?}");
    }
}
