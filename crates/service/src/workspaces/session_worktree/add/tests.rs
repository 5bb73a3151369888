//! Worktrees of sessions in real repositories, made with the git that is here.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::workspaces::session_worktree::lab::Lab;
use crate::workspaces::test_repository::text;

/// Returns why a worktree cannot be made.
fn refused(lab: &Lab, wanted: &SessionWorktree) -> String {
    let error = find_start(wanted).expect_err("refused").to_string();
    assert_eq!(lab.add(wanted).expect_err("refused").to_string(), error, "asked and made alike");
    assert!(!Path::new(&wanted.directory).exists(), "nothing is made");
    error
}

#[test]
fn a_worktree_is_made_on_a_branch_of_its_own_and_locked() {
    let Some(lab) = Lab::new() else { return };
    let wanted = lab.wanted("one", DirtyPolicy::Refuse);
    let head = lab.0.git(&["rev-parse", "HEAD"]);
    for _ in 0..2 {
        assert_eq!(
            lab.add(&wanted).expect("made, or there"),
            Added { commit: head.clone(), carried: 0, copied: 0, setup: None }
        );
    }
    assert_eq!(lab.read(&wanted, "below/file").as_deref(), Some("first"));
    assert_eq!(lab.lock_of(&wanted).as_deref(), Some(MADE));
    let directory = Path::new(&wanted.directory);
    assert_eq!(lab.0.try_git(directory, &["branch", "--show-current"]).as_deref(), Some("rekindle/one"));
    // Others get at its files as at those of the repository, and not at the directory that all of them are in.
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&directory.join("below/file")), mode(&lab.0.place().join("trees"))), (0o644, 0o700));
    // A subdirectory that is not committed is there all the same.
    let deep = lab.wanted("deep", DirtyPolicy::Ignore);
    let root = Path::new(&deep.directory).join("new/below");
    lab.add_prepared(&deep, &root, &Preparation::default()).expect("made");
    assert!(root.is_dir());
}

#[test]
fn a_branch_begins_where_it_is_said_or_goes_on() {
    let Some(lab) = Lab::new() else { return };
    let first = lab.0.git(&["rev-parse", "HEAD"]);
    lab.0.write("below/file", "second");
    lab.0.commit("second");
    let at_first = SessionWorktree { base: Some(first.clone()), ..lab.wanted("old", DirtyPolicy::Refuse) };
    assert_eq!(lab.add(&at_first).expect("made").commit, first);
    assert_eq!(lab.read(&at_first, "below/file").as_deref(), Some("first"));
    // One that is there goes on where it stands, also if HEAD is at no branch.
    lab.0.git(&["branch", "mine", &first]);
    lab.0.git(&["checkout", "-q", "--detach"]);
    let mine = SessionWorktree { branch: "mine".into(), ..lab.wanted("mine", DirtyPolicy::Refuse) };
    assert_eq!(lab.add(&mine).expect("made").commit, first);
    let detached = lab.wanted("detached", DirtyPolicy::Refuse);
    assert_eq!(lab.add(&detached).expect("made").commit, lab.0.git(&["rev-parse", "HEAD"]));
}

#[test]
fn what_speaks_against_it_is_said_and_nothing_is_made() {
    let Some(lab) = Lab::new() else { return };
    lab.0.git(&["branch", "other"]);
    lab.0.write("below/file", "second");
    lab.0.commit("second");
    let wanted = || lab.wanted("one", DirtyPolicy::Refuse);
    let main = SessionWorktree { branch: "main".into(), ..wanted() };
    assert!(refused(&lab, &main).contains("main is checked out in"));
    for name in ["", "-x", "a..b", "@{-1}", "a b", "HEAD", "x.lock"] {
        let bad = SessionWorktree { branch: name.into(), ..wanted() };
        assert!(refused(&lab, &bad).ends_with("is not a valid branch name"), "{name}");
    }
    let nowhere = SessionWorktree { base: Some("nowhere".into()), ..wanted() };
    assert_eq!(refused(&lab, &nowhere), "there is no commit nowhere");
    let option = SessionWorktree { base: Some("--all".into()), ..wanted() };
    assert_eq!(refused(&lab, &option), "there is no commit --all");
    let elsewhere = SessionWorktree { branch: "other".into(), base: Some("HEAD".into()), ..wanted() };
    assert!(refused(&lab, &elsewhere).contains("other already exists"));
    lab.0.write("new", "text");
    lab.0.write("below/file", "third");
    lab.0.write("some.log", "ignored");
    assert!(refused(&lab, &wanted()).ends_with("would be left out: below/file, new"));
    (0..3).for_each(|n| lab.0.write(&format!("new{n}"), "text"));
    assert!(refused(&lab, &wanted()).ends_with("below/file, new, new0 and 2 more"));
    let carried = SessionWorktree { base: Some("HEAD~".into()), ..lab.wanted("two", DirtyPolicy::Carry) };
    assert!(refused(&lab, &carried).contains("belong to the commit"));
    // Without any commit, and in no repository.
    let empty = lab.0.place().join("empty");
    fs::create_dir(&empty).expect("made");
    let at = |path: &Path| SessionWorktree {
        origin: text(path),
        repository: text(&path.join(".git")),
        ..wanted()
    };
    lab.0.try_git(&empty, &["init", "-q"]).expect("made");
    assert!(find_start(&at(&empty)).expect_err("refused").to_string().contains("has no commit yet"));
    let bare = lab.0.place().join("bare");
    lab.0.git(&["clone", "-q", "--bare", ".", &text(&bare)]);
    assert!(matches!(GitRepository::around(&bare), Err(GitError::NotRepository { .. })));
}

#[test]
fn what_is_not_committed_is_carried_over_and_stays() {
    let Some(lab) = Lab::new() else { return };
    let at = |path: &str| lab.0.root().join(path);
    lab.0.write("below/file", "changed");
    lab.0.write("staged", "new");
    lab.0.git(&["add", "staged"]);
    lab.0.write("deep/er/new", "new");
    lab.0.write("some.log", "ignored");
    fs::remove_file(at("gone")).expect("removed");
    // A directory where a file was, and a file where a directory was.
    fs::remove_dir_all(at("folder")).expect("removed");
    lab.0.write("folder", "a file now");
    fs::set_permissions(at("folder"), fs::Permissions::from_mode(0o755)).expect("set");
    lab.0.write("gone/inside", "a directory now");
    symlink("/nowhere", at("link")).expect("linked");
    let status = lab.0.git(&["status", "--porcelain", "--untracked-files=all"]);
    let wanted = lab.wanted("one", DirtyPolicy::Carry);
    let added = lab.add(&wanted).expect("made");
    let there = |path: &str| lab.read(&wanted, path);
    assert_eq!(there("below/file").as_deref(), Some("changed"));
    assert_eq!((there("staged").as_deref(), there("deep/er/new").as_deref()), (Some("new"), Some("new")));
    assert_eq!(there("gone/inside").as_deref(), Some("a directory now"));
    assert_eq!((there("folder").as_deref(), there("some.log")), (Some("a file now"), None));
    let directory = Path::new(&wanted.directory);
    let mode = fs::metadata(directory.join("folder")).expect("there").permissions().mode();
    assert_ne!(mode & 0o100, 0, "it is executable there too");
    assert_eq!(fs::read_link(directory.join("link")).expect("a link"), Path::new("/nowhere"));
    assert_eq!(lab.0.git(&["status", "--porcelain", "--untracked-files=all"]), status, "as it was");
    assert_eq!(added.carried as usize, status.lines().count());
    // Never through a link that was committed where a directory is now.
    let outside = lab.0.place().join("outside");
    fs::create_dir(&outside).expect("made");
    lab.0.git(&["clean", "-qfd"]);
    lab.0.git(&["reset", "-q", "--hard"]);
    symlink(&outside, at("way")).expect("linked");
    lab.0.commit("a link");
    fs::remove_file(at("way")).expect("removed");
    lab.0.write("way/file", "inside");
    let wanted = lab.wanted("two", DirtyPolicy::Carry);
    lab.add(&wanted).expect("made");
    assert_eq!(lab.read(&wanted, "way/file").as_deref(), Some("inside"));
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0);
}

#[test]
fn one_that_was_cut_short_is_made_anew() {
    let Some(lab) = Lab::new() else { return };
    lab.0.write("new", "text");
    let wanted = lab.wanted("one", DirtyPolicy::Carry);
    let making =
        ["worktree", "add", "-q", "--lock", "--reason", MAKING, "-b", &wanted.branch, &wanted.directory];
    lab.0.git(&making);
    fs::write(Path::new(&wanted.directory).join("half"), "").expect("written");
    lab.add(&wanted).expect("made anew");
    assert_eq!((lab.read(&wanted, "new").as_deref(), lab.read(&wanted, "half")), (Some("text"), None));
    assert_eq!(lab.lock_of(&wanted).as_deref(), Some(MADE));
    // What somebody has done in it since is never made anew, and a lock that somebody took off stays off.
    fs::write(Path::new(&wanted.directory).join("work"), "mine").expect("written");
    lab.0.git(&["worktree", "unlock", &wanted.directory]);
    lab.add(&wanted).expect("there");
    assert_eq!(lab.read(&wanted, "work").as_deref(), Some("mine"));
    assert_eq!(lab.lock_of(&wanted), None);
}
