//! Workspaces that are, contain or lie in git repositories.

use super::*;
use crate::test_git::git;

/// Returns a repository with an ignored file that is tracked, or nothing if there is no git.
fn repository() -> Option<Lab> {
    let lab = Lab::new();
    if !git(&lab.root(), &["init"]) {
        eprintln!("no git here: not tested");
        return None;
    }
    lab.write(".gitignore", "out/\n*.log\n");
    lab.write("out/tracked", "t");
    lab.write("out/built", "b");
    lab.write("x.log", "l");
    assert!(git(&lab.root(), &["add", "-f", ".gitignore", "out/tracked"]));
    assert!(git(&lab.root(), &["commit", "-qm", "first"]));
    Some(lab)
}

#[test]
fn tracked_files_count_although_they_are_ignored_cold_and_warm() {
    let Some(lab) = repository() else { return };
    let expected = ["f .gitignore out/\n*.log\n", "d out", "f out/tracked t"];
    let captured = lab.capture();
    assert_eq!(lab.show(captured.tree), expected);
    let head = captured.git.expect("a repository");
    assert_eq!(head.reference.as_deref(), Some("refs/heads/main"));
    assert!(head.commit.is_some_and(|commit| commit.len() == 40));
    let cache = lab.warm();
    assert_eq!(lab.show(capture(&lab.options(), &lab.objects, &cache).expect("captured").tree), expected);

    // What is added to the index counts from then on, although no file changed.
    assert!(git(&lab.root(), &["add", "-f", "x.log"]));
    let added = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(lab.show(added.tree), [&expected[..], &["f x.log l"]].concat());

    // An index that cannot be read is told, and costs that knowledge only.
    fs::write(lab.at(".git/index"), "rubbish").expect("written");
    let broken = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(lab.show(broken.tree), [expected[0]]);
    assert!(broken.notes.len() == 1 && broken.notes[0].contains("index"), "{:?}", broken.notes);
}

#[test]
fn embedded_repositories_are_walked_by_their_own_rules_and_linked_worktrees_are_skipped() {
    let Some(lab) = repository() else { return };
    assert!(git(&lab.root(), &["worktree", "add", "-q", "trees/one"]));
    fs::create_dir(lab.at("sub")).expect("a directory");
    assert!(git(&lab.at("sub"), &["init"]));
    lab.write("sub/.gitignore", "*.tmp\n");
    lab.write("sub/x.log", "not ignored in this repository");
    lab.write("sub/x.tmp", "tracked");
    lab.write("sub/y.tmp", "ignored");
    assert!(git(&lab.at("sub"), &["add", "-f", "x.tmp"]));
    // A `.git` that is no repository is left out all the same.
    fs::create_dir_all(lab.at("odd/.git")).expect("directories");
    let captured = lab.capture();
    assert_eq!(
        lab.show(captured.tree),
        [
            "f .gitignore out/\n*.log\n",
            "d odd",
            "d out",
            "f out/tracked t",
            "d sub",
            "f sub/.gitignore *.tmp\n",
            "f sub/x.log not ignored in this repository",
            "f sub/x.tmp tracked",
            "d trees",
        ]
    );
    assert_eq!(Lab::skipped(&captured), [("trees/one".to_owned(), SkipReason::Worktree)]);
    // The linked worktree itself is a workspace like any other.
    let inside = CaptureOptions::new(lab.at("trees/one"));
    let inside = capture(&inside, &lab.objects, &StatCache::new()).expect("captured");
    assert_eq!(lab.show(inside.tree), ["f .gitignore out/\n*.log\n", "d out", "f out/tracked t"]);
    assert_eq!(inside.git.and_then(|head| head.reference).as_deref(), Some("refs/heads/one"));
}

#[test]
fn a_root_inside_a_repository_knows_its_head_and_what_is_tracked_there() {
    let Some(lab) = repository() else { return };
    lab.write("out/.gitignore", "*\n");
    let inside = CaptureOptions::new(lab.at("out"));
    let captured = capture(&inside, &lab.objects, &StatCache::new()).expect("captured");
    assert_eq!(lab.show(captured.tree), ["f tracked t"]);
    assert!(captured.git.is_some_and(|head| head.commit.is_some()));
}
