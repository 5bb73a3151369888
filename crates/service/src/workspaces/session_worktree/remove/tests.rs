//! Removals of real worktrees.

use std::fs;

use rekindle_domain::event::DirtyPolicy;

use super::*;
use crate::workspaces::session_worktree::lab::Lab;
use crate::workspaces::test_repository::text;

fn remove(lab: &Lab, worktree: &SessionWorktree, is_forced: bool) -> Result<Removed, WorkspaceError> {
    let bundle = bundle(lab);
    let bundle = is_forced.then_some(&*bundle);
    let removal = Removal { worktree, message: "Left behind", umask: 0o022, bundle };
    lab.0.workspaces.remove_session_worktree(&removal)
}

fn bundle(lab: &Lab) -> PathBuf {
    lab.0.place().join("home/removed-worktrees/one.bundle")
}

fn branches(lab: &Lab) -> String {
    lab.0.git(&["branch", "--format=%(refname:short)"])
}

#[test]
fn one_without_anything_of_its_own_goes_with_its_branch() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.write(&one, "some.log", "ignored");
    for _ in 0..2 {
        let removed = remove(&lab, &one, false).expect("removed, or gone already");
        assert_eq!(removed, Removed { keeps_branch: false, bundle: None });
    }
    assert!(!Path::new(&one.directory).exists());
    assert_eq!((branches(&lab).as_str(), lab.0.git(&["worktree", "list"]).lines().count()), ("main", 1));
    // A branch that somebody named stays, and what is on it is not lost.
    lab.0.git(&["branch", "mine"]);
    let mine = SessionWorktree { branch: "mine".into(), ..lab.wanted("mine", DirtyPolicy::Refuse) };
    lab.add(&mine).expect("made");
    lab.write(&mine, "new", "work");
    lab.commit(&mine, "on a branch that stays");
    assert!(remove(&lab, &mine, false).expect("removed").keeps_branch);
    assert_eq!(branches(&lab), "main\nmine");
}

#[test]
fn work_that_is_nowhere_else_keeps_it() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    let refused = || remove(&lab, &one, false).expect_err("refused").to_string();
    lab.write(&one, "new", "work");
    assert!(refused().ends_with("nowhere else: not committed: new"), "{}", refused());
    lab.commit(&one, "work");
    assert!(refused().ends_with("nowhere else: a commit that no other branch has"), "{}", refused());
    // Somebody has it elsewhere.
    lab.0.git(&["branch", "copy", "rekindle/one"]);
    // A HEAD that is at no branch has commits too.
    lab.git(&one, &["checkout", "-q", "--detach"]);
    lab.write(&one, "new", "more");
    lab.commit(&one, "more");
    assert!(refused().contains("a commit"), "{}", refused());
    lab.0.git(&["tag", "kept", &lab.git(&one, &["rev-parse", "HEAD"])]);
    remove(&lab, &one, false).expect("removed");
}

#[test]
fn one_that_somebody_locked_stays() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.0.git(&["worktree", "unlock", &one.directory]);
    for (reason, told) in
        [("a disk that I carry around", "a disk that I carry around"), ("", "no reason is given")]
    {
        lab.0.git(&["worktree", "lock", "--reason", reason, &one.directory]);
        for is_forced in [false, true] {
            let refused = remove(&lab, &one, is_forced).expect_err("refused").to_string();
            assert!(refused.ends_with(&format!("is locked: {told}")), "{refused}");
        }
        assert!(lab.0.workspaces.check_saved(&one).is_err(), "nor is it collected");
        assert!(Path::new(&one.directory).join("below/file").exists());
        lab.0.git(&["worktree", "unlock", &one.directory]);
    }
    remove(&lab, &one, false).expect("removed");
}

#[test]
fn what_was_nowhere_else_comes_back_from_its_bundle() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.write(&one, "below/file", "committed");
    lab.commit(&one, "work");
    lab.write(&one, "new", "not committed");
    fs::remove_file(Path::new(&one.directory).join("gone")).expect("removed");
    let removed = remove(&lab, &one, true).expect("removed");
    assert_eq!(removed, Removed { keeps_branch: false, bundle: Some(bundle(&lab)) });
    assert_eq!(branches(&lab), "main");
    lab.0.git(&["fetch", "-q", &text(&bundle(&lab)), "rekindle/one:back"]);
    assert_eq!(lab.0.git(&["show", "back:new"]), "not committed");
    assert_eq!(lab.0.git(&["log", "--format=%s", "back"]), "Left behind\nwork\nfirst");
    assert!(lab.0.try_git(&lab.0.root(), &["show", "back:gone"]).is_none());
    // Whoever died behind the bundle finds it, and has it named.
    assert_eq!(remove(&lab, &one, true).expect("gone").bundle, Some(bundle(&lab)));
}

#[test]
fn one_whose_removal_was_cut_short_goes_although_half_of_it_is_missing() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.0.git(&["worktree", "unlock", &one.directory]);
    // Between the locks nothing is removed yet.
    lab.write(&one, "new", "work");
    assert!(remove(&lab, &one, false).is_err());
    fs::remove_file(Path::new(&one.directory).join("new")).expect("removed");
    cut_short(&lab, &one);
    fs::remove_file(Path::new(&one.directory).join("gone")).expect("removed");
    remove(&lab, &one, false).expect("removed");
    assert!(!Path::new(&one.directory).exists());
}

/// Leaves a worktree as a removal does that dies when everything is saved.
fn cut_short(lab: &Lab, one: &SessionWorktree) {
    let repository = Path::new(&one.repository);
    let listed = find_listed(repository, |listed| listed.directory == Path::new(&one.directory));
    let found = listed.expect("git answers").expect("it is there");
    set_lock(repository, &found, Path::new(&one.directory)).expect("locked");
    assert!(lab.0.workspaces.check_saved(one).is_ok(), "nothing is in the way of what is left to do");
}

// I12
#[test]
fn work_in_one_whose_removal_was_cut_short_keeps_it() {
    let Some(lab) = Lab::new() else { return };
    type Work = fn(&Lab, &SessionWorktree);
    let works: [(&str, Work); 4] = [
        ("not committed: new", |lab, one| lab.write(one, "new", "work")),
        ("not committed: below/file", |lab, one| lab.write(one, "below/file", "changed")),
        ("not committed: new", |lab, one| {
            lab.write(one, "new", "work");
            lab.git(one, &["add", "new"]);
        }),
        ("a commit", |lab, one| {
            lab.write(one, "new", "work");
            lab.commit(one, "work");
        }),
    ];
    for (number, (named, work)) in works.into_iter().enumerate() {
        let one = lab.wanted(&format!("one{number}"), DirtyPolicy::Refuse);
        lab.add(&one).expect("made");
        cut_short(&lab, &one);
        work(&lab, &one);
        assert!(lab.0.workspaces.check_saved(&one).is_err(), "nor is it collected");
        let refused = remove(&lab, &one, false).expect_err("refused").to_string();
        assert!(refused.contains(named), "{refused}");
    }
}

// I12
#[test]
fn what_a_removal_saved_is_kept_beside_what_was_done_after_it_was_cut_short() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.write(&one, "new", "saved");
    lab.commit(&one, "saved");
    let (first, second) = (bundle(&lab), bundle(&lab).with_file_name("one-2.bundle"));
    let removal = Removal { worktree: &one, message: "Left behind", umask: 0o022, bundle: Some(&first) };
    let directory = Path::new(&one.directory);
    let save = || {
        let found = find_listed(Path::new(&one.repository), |listed| listed.directory == directory);
        let (found, branch) = (found.expect("git answers"), own_branch(&one).expect("a branch"));
        let lock = lab.0.workspaces.lock_restore(directory).expect("free");
        lab.0.workspaces.save(&removal, found.as_ref(), branch, &lock).expect("saved");
    };
    // Who dies behind it and comes again does not write it again.
    save();
    save();
    assert!(first.exists() && !second.exists());
    cut_short(&lab, &one);
    lab.git(&one, &["reset", "-q", "--hard", "main"]);
    lab.write(&one, "other", "later");
    assert_eq!(remove(&lab, &one, true).expect("removed").bundle, Some(second.clone()));
    for (bundle, file, content) in [(&first, "new", "saved"), (&second, "other", "later")] {
        lab.0.git(&["fetch", "-q", &text(bundle), "+rekindle/one:back"]);
        assert_eq!(lab.0.git(&["show", &format!("back:{file}")]), content);
    }
}

#[test]
fn one_that_somebody_deleted_leaves_its_branch_to_be_saved() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.add(&one).expect("made");
    lab.write(&one, "new", "work");
    lab.commit(&one, "work");
    fs::remove_dir_all(&one.directory).expect("removed");
    assert!(remove(&lab, &one, false).expect_err("refused").to_string().contains("a commit"));
    assert_eq!(remove(&lab, &one, true).expect("removed").bundle, Some(bundle(&lab)));
    assert_eq!(branches(&lab), "main");
}

#[test]
fn repositories_inside_are_never_removed_with_what_only_they_have() {
    let Some(lab) = Lab::new() else { return };
    let library = lab.0.place().join("library");
    lab.0.git(&["clone", "-q", ".", &text(&library)]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &text(&library), "lib"];
    lab.0.git(&add);
    lab.0.commit("a submodule");
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    lab.0.git(&["config", "protocol.file.allow", "always"]);
    // As a person would allow it: for the calls that Rekindle makes.
    let making = ["worktree", "add", "-q", "-b", &one.branch, &one.directory];
    lab.0.git(&making);
    lab.git(&one, &["-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init"]);
    let refused = |why: &str| {
        for is_forced in [false, true] {
            let error = remove(&lab, &one, is_forced).expect_err("refused").to_string();
            assert!(error.contains(why) && error.contains("nowhere else"), "{error}");
        }
    };
    lab.write(&one, "lib/below/file", "changed inside");
    refused("one/lib");
    let inside = Path::new(&one.directory).join("lib");
    lab.0.try_git(&inside, &["commit", "-qam", "inside"]).expect("committed");
    refused("one/lib");
    lab.0.try_git(&inside, &["push", "-q", "origin", "HEAD:refs/heads/pushed"]).expect("pushed");
    lab.0.try_git(&inside, &["fetch", "-q"]).expect("fetched");
    lab.commit(&one, "the submodule moved");
    fs::create_dir(Path::new(&one.directory).join("mine")).expect("made");
    lab.0.try_git(&Path::new(&one.directory).join("mine"), &["init", "-q"]).expect("made");
    lab.write(&one, "mine/file", "work");
    refused("one/mine");
    fs::remove_dir_all(Path::new(&one.directory).join("mine")).expect("removed");
    remove(&lab, &one, true).expect("removed");
}
