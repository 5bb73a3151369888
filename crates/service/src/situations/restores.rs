//! Restores: files that are put back while their session goes on, forks with files, and sessions that go on from a kept snapshot.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, Policy, Retention, SnapshotName, SnapshotReason};
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{ForkAt, NewFilesRestore, NewFork, NewSnapshotRestore};
use rekindle_wire::view::{FilesRestoring, ForkVerdict};

use super::checkpoints::Captured;
use super::home::Home;
use super::table::Table;
use crate::commands::{Locks, restore_snapshot, rewind};
use crate::drive::workspace_files::FilesError;
use crate::error::Result;
use crate::lock::locked;
use crate::snapshots::Snapshots;

fn put_back(home: &Home) -> Result<FilesRestoring> {
    rewind::restore_files(&home.views(), home.session, &NewFilesRestore::default(), "test")
}

// I12: its agent remembers files as they are not any more: it is told, once it goes on.
#[test]
fn files_are_put_back_beside_an_agent_which_is_told_with_its_next_prompt() {
    let mut table = Table::default();
    let mut at = Captured::new(&[]);
    at.home.say("paint it red");
    at.home.news();
    let restoring = put_back(&at.home).expect("recorded");
    let start = at.run().checkpoints.start.and_then(|start| start.tree);
    assert_eq!((Some(restoring.tree), restoring.run_id), (start, at.run().run_id));
    let done = "session.files_restoring; session.files_restored";
    table.row("put back", at.home.settle(), done, "idle", "");
    assert_eq!(*locked(&at.home.files.asked), [restoring.tree]);
    at.home.say("paint it green");
    let prompt = at.home.prompted();
    assert!(prompt.starts_with("[Files Restored]") && prompt.contains("- wall (modified)"), "{prompt}");
    assert!(prompt.contains("2 files") && prompt.ends_with("paint it green"), "{prompt}");
    at.home.say("and again");
    assert_eq!(at.home.prompted(), "and again", "told once");
    table.done(1);
}

// I14: whoever comes after a crash finishes it, before anything begins; what is sent meanwhile waits.
#[test]
fn files_that_are_put_back_outlive_the_daemon_and_the_agent() {
    for kills_agent in [false, true] {
        let mut table = Table::default();
        let mut at = Captured::new(&[]);
        at.home.say("paint it red");
        at.home.news();
        let short = || FilesError::NotYet("no room".into());
        locked(&at.home.files.errors).extend([short(), short()]);
        put_back(&at.home).expect("recorded");
        at.home.send_only();
        if kills_agent {
            at.home.scripted.kill();
        }
        at.home.restart();
        let held = "its files cannot be restored yet: no room";
        let gone = if kills_agent { "; agent.exited" } else { "" };
        table.row(
            "short",
            &mut at.home,
            &format!("session.files_restoring; message.user queued{gone}"),
            "idle",
            held,
        );
        at.home.wait_long();
        let news = at.home.news();
        assert!(news.starts_with("session.files_restored; run.started"), "{kills_agent}: {news}");
        assert!(news.contains("run.completed"), "{kills_agent}: {news}");
        assert!(at.home.prompted().contains("[Files Restored]"), "{kills_agent}");
        assert_eq!(locked(&at.home.files.asked).len(), 3, "{kills_agent}");
        table.done(1);
    }
}

#[test]
fn what_a_run_left_is_captured_before_its_files_are_put_back() {
    let mut at = Captured::new(&[]);
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    at.home.settle();
    // The first lets the prompt go; the one at the end hangs.
    at.home.captures.let_go();
    at.home.settle().news();
    put_back(&at.home).expect("recorded");
    at.home.settle();
    assert_eq!(at.home.news(), "session.files_restoring", "its directory is still looked at");
    at.home.captures.let_go();
    let news = at.home.settle().news();
    assert!(news.starts_with("run.checkpoint end"), "{news}");
    assert!(news.ends_with("session.files_restored"), "{news}");
}

#[test]
fn files_are_not_put_back_where_there_is_nothing_or_something_goes_on() {
    let refused = |home: &Home| put_back(home).expect_err("refused").code;
    let mut at = Captured::new(&["hang text end"]);
    assert_eq!(refused(&at.home), Code::NothingToUndo, "nothing was asked");
    at.home.send();
    assert_eq!(refused(&at.home), Code::StillRunning);
    at.home.scripted.go_on();
    at.home.settle();
    put_back(&at.home).expect("recorded");
    assert_eq!(refused(&at.home), Code::NotNow, "once at a time");
    at.home.settle().close();
    assert_eq!(refused(&at.home), Code::SessionClosed);
    let mut home = Home::new(&[""]);
    home.say("paint it red");
    assert_eq!(refused(&home), Code::CheckpointMissing);
}

fn with_files() -> NewFork {
    NewFork { files: true, ..NewFork::default() }
}

// I14: its first record says that files are to be restored; whoever comes does it.
#[test]
fn a_fork_with_files_restores_those_of_its_cut_before_anything_begins() {
    let mut at = Captured::new(&[]);
    let first = at.home.say("paint it red");
    let end = at.run().checkpoints.end.and_then(|end| end.tree);
    std::fs::write(at.path("a.txt"), "blue\n").expect("written");
    at.home.say("paint it blue");
    let parent = at.home.session;
    let place = tempfile::tempdir().expect("a directory");
    let fork = place.path().join("new/fork");
    let named = |name: &std::path::Path| Some(name.display().to_string());
    let new =
        NewFork { at: Some(ForkAt::Name(first.to_string())), working_dir: named(&fork), ..with_files() };
    assert_eq!(at.home.fork(new).expect("forked"), ForkVerdict::Reprimed);
    assert!(fork.is_dir(), "it is made");
    assert_eq!(at.home.news(), "session.files_restored");
    assert_eq!(locked(&at.home.files.asked).pop(), end);
    at.home.say("paint it green");
    let prompt = at.home.prompted();
    assert!(
        !prompt.contains("[Files Restored]") && prompt.contains("red"),
        "it has not seen others: {prompt}"
    );
    // Elsewhere nothing is replaced, unless somebody insists.
    at.home.go_on_with(parent);
    std::fs::write(fork.join("mine"), "").expect("written");
    let new = || NewFork { working_dir: named(&fork), ..with_files() };
    assert_eq!(at.home.fork(new()).expect_err("not empty").code, Code::DirectoryNotEmpty);
    let missing = NewFork { working_dir: named(&at.path("a.txt")), ..with_files() };
    assert_eq!(at.home.fork(missing).expect_err("a file").code, Code::InvalidWorkingDir);
    at.home.fork(NewFork { force: true, ..new() }).expect("insisted on");
    assert_eq!(at.home.news(), "session.files_restored");
}

/// Runs git in the directory of a session; false if there is none.
fn git(at: &Captured, arguments: &[&str]) -> bool {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(at.path("")).args(own).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|output| output.status.success())
}

// I14: its first record says what is to be made, with everything that is needed for it; whoever comes does it.
#[test]
fn a_fork_gets_a_worktree_at_the_commit_of_its_cut() {
    let mut at = Captured::new(&[]);
    let fork = |at: &mut Captured, new: NewFork| at.home.fork(NewFork { worktree: true, ..new });
    let plain = NewFork::default;
    if !git(&at, &["init", "-q"]) {
        eprintln!("no git here: not tested");
        return;
    }
    at.home.say("paint it red");
    let unborn = fork(&mut at, plain()).expect_err("nothing is committed");
    assert_eq!((unborn.code, unborn.hint), (Code::NotARepository, Some(Hint::RestoreWithoutGit)));
    assert!(git(&at, &["add", "."]) && git(&at, &["commit", "-qm", "first"]));
    let first = at.home.say("paint it green");
    assert!(git(&at, &["commit", "-q", "--allow-empty", "-m", "second"]));
    at.home.say("paint it blue");
    let (parent, repository) = (at.home.session, at.path("").canonicalize().expect("a path"));
    let cut = || Some(ForkAt::Name(first.to_string()));
    at.home.news();
    fork(&mut at, NewFork { at: cut(), ..plain() }).expect("forked");
    assert_eq!(at.home.news(), "session.files_restored");
    let (made, root) = locked(&at.home.files.worktrees).pop().expect("made");
    assert_eq!((made.directory.as_str(), root.to_str()), (&*at.home.state().working_dir, root.to_str()));
    assert_eq!(root.parent(), repository.parent());
    let name = format!("{}-", repository.file_name().expect("a name").to_string_lossy());
    assert!(root.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)), "{root:?}");
    assert!(git(&at, &["diff", "--quiet", &made.commit, "HEAD~"]), "that of the cut: {}", made.commit);
    assert!(at.home.state().restoring.is_none(), "it is done");
    // At another place, where nothing may be; whoever insists is refused as well.
    at.home.go_on_with(parent);
    let place = tempfile::tempdir().expect("a directory");
    let named = |name: &str| Some(place.path().join(name).to_str().expect("text").to_owned());
    std::fs::write(place.path().join("mine"), "").expect("written");
    for name in ["", "mine"] {
        let new = NewFork { working_dir: named(name), force: true, ..plain() };
        let taken = fork(&mut at, new).expect_err("something is there");
        assert_eq!((taken.code, taken.hint), (Code::DirectoryNotEmpty, Some(Hint::NameNewDirectory)));
    }
    fork(&mut at, NewFork { working_dir: named("new/fork"), ..plain() }).expect("forked");
    let (made, _) = locked(&at.home.files.worktrees).pop().expect("made");
    assert_eq!(Some(made.directory), named("new/fork"));
    // The commit of then may be gone by now, and so may the repository.
    at.home.go_on_with(parent);
    std::fs::remove_dir_all(at.path(".git/objects")).expect("removed");
    std::fs::create_dir(at.path(".git/objects")).expect("made");
    assert_eq!(fork(&mut at, plain()).expect_err("gone").code, Code::CommitMissing);
    std::fs::remove_dir_all(at.path(".git")).expect("removed");
    assert_eq!(fork(&mut at, plain()).expect_err("gone").code, Code::NotARepository);
    assert!(locked(&at.home.files.worktrees).is_empty());
}

#[test]
fn a_fork_with_files_is_refused_where_no_checkpoint_was_taken() {
    let mut home = Home::new(&[""]);
    home.say("paint it red");
    assert_eq!(home.fork(with_files()).expect_err("refused").code, Code::CheckpointMissing);
    // Before the first run its start tells what there was; in the middle of it nothing is restored.
    let mut at = Captured::new(&["hang text end"]);
    at.home.send();
    let new = || NewFork { at: Some(ForkAt::Seq(1)), ..with_files() };
    assert_eq!(at.home.fork(new()).expect_err("at work").code, Code::StillRunning);
    at.home.scripted.go_on();
    at.home.settle();
    let start = at.run().checkpoints.start.and_then(|start| start.tree);
    assert_eq!(at.home.fork(new()).expect("forked"), ForkVerdict::Fresh);
    assert_eq!(locked(&at.home.files.asked).pop(), start);
}

fn keep(home: &Home, keep: usize) -> Snapshots {
    let policy = Policy { retention: Retention { keep, max_age: None }, ..Policy::default() };
    Snapshots::new(home.store().clone(), home.workers().records.clock().clone(), policy)
}

fn restore(
    home: &Home,
    snapshots: &Snapshots,
    name: SnapshotName,
    new: &NewSnapshotRestore,
) -> Result<SessionId> {
    let (views, locks) = (home.views(), Locks::default());
    restore_snapshot::restore((&views, &locks, snapshots), (home.session, name), new, (None, "test"))
}

/// Returns the snapshots of a session: which records they are of, and why they were taken.
fn kept(snapshots: &Snapshots, session: SessionId) -> Vec<(u64, SnapshotReason)> {
    let (kept, mut found) = (snapshots.kept(), Vec::new());
    for file in kept.list(session).expect("a list") {
        found.push((file.name.seq, kept.read(session, file.name).expect("readable").reason));
    }
    found
}

#[test]
fn a_session_goes_on_from_a_snapshot_beside_the_one_it_is_of() {
    let mut at = Captured::new(&[]);
    at.home.say("paint it red");
    let snapshots = keep(&at.home, 10);
    let (file, snapshot) = snapshots.take_now(at.home.session, SnapshotReason::Request).expect("taken");
    at.home.say("paint it blue");
    let parent = at.home.session;
    let new = NewSnapshotRestore { files: true, ..NewSnapshotRestore::default() };
    let made = restore(&at.home, &snapshots, file.name, &new).expect("restored");
    assert_eq!((snapshots.counts.restores.get(), snapshots.counts.restore_took.read().count), (1, 1));
    drop(snapshots);
    at.home.go_on_with(made);
    let from = at.home.state().forked_from.expect("a fork");
    assert_eq!((from.session_id, from.snapshot), (parent, Some(file.name)));
    assert!(from.seq < file.name.seq, "between two runs");
    assert_eq!(at.home.count("snapshot.restored"), 0, "not shown in short");
    assert_eq!(at.home.news(), "session.files_restored");
    assert_eq!(locked(&at.home.files.asked).pop(), snapshot.tree);
    at.home.say("paint it green");
    let prompt = at.home.prompted();
    assert!(prompt.contains("red") && !prompt.contains("blue"), "{prompt}");
    assert!(!at.home.go_on_with(parent).state().closed);
}

// I12: one append; the one that it goes on from is let go of neither before nor after.
#[test]
fn a_session_goes_on_from_a_snapshot_in_its_own_place() {
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    let snapshots = keep(&home, 1);
    let parent = home.session;
    let (file, _) = snapshots.take_now(parent, SnapshotReason::Request).expect("taken");
    home.say("paint it blue");
    let new = NewSnapshotRestore { in_place: true, ..NewSnapshotRestore::default() };
    let made = restore(&home, &snapshots, file.name, &new).expect("restored");
    let reasons: Vec<SnapshotReason> =
        kept(&snapshots, parent).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [SnapshotReason::Request, SnapshotReason::BeforeRestore]);
    snapshots.take_now(parent, SnapshotReason::Request).expect("taken");
    assert_eq!(kept(&snapshots, parent)[0], (file.name.seq, SnapshotReason::Request), "a fork names it");
    let again = restore(&home, &snapshots, file.name, &new).expect_err("its place is taken");
    assert_eq!(again.code, Code::SessionClosed);
    assert_eq!(snapshots.counts.failed_restores.get(), 0, "nothing is broken");
    drop(snapshots);
    assert!(home.state().closed);
    home.go_on_with(made);
    assert_eq!((home.state().title.as_str(), home.status()), ("t", "idle"));
    home.say("paint it green");
    let prompt = home.prompted();
    assert!(prompt.contains("red") && !prompt.contains("blue"), "{prompt}");
}

// I12: what a collection let go is said to be gone; nothing else is restored in its place, and the conversation goes on without.
#[test]
fn a_snapshot_whose_files_were_let_go_is_restored_without_them_only() {
    let mut at = Captured::new(&[]);
    at.home.say("paint it red");
    let snapshots = keep(&at.home, 10);
    let (file, snapshot) = snapshots.take_now(at.home.session, SnapshotReason::Request).expect("taken");
    let tree = snapshot.tree.expect("captured");
    let blobs = at.home.store().blobs();
    let collection = blobs.begin_collection().expect("nobody else collects");
    let (nobody, later) = (HashSet::new(), SystemTime::now() + Duration::from_secs(1_000_000_000));
    collection.collect_packs(&nobody, later).expect("collected");
    collection.collect_blobs(&nobody, later).expect("collected");
    drop(collection);
    assert!(!blobs.contains(&tree).expect("looked"));
    for in_place in [false, true] {
        let files = NewSnapshotRestore { in_place, files: true, ..NewSnapshotRestore::default() };
        let refused = restore(&at.home, &snapshots, file.name, &files).expect_err("they are gone");
        assert_eq!((refused.code, refused.hint), (Code::SnapExpired, Some(Hint::LeaveFiles)), "{in_place}");
        assert!(refused.message.contains(&tree.to_string()), "{}", refused.message);
    }
    assert_eq!(snapshots.counts.failed_restores.get(), 2);
    assert!(!at.home.state().closed && locked(&at.home.files.asked).is_empty());
    let plain = NewSnapshotRestore { in_place: true, ..NewSnapshotRestore::default() };
    restore(&at.home, &snapshots, file.name, &plain).expect("restored");
    assert!(at.home.state().closed);
}

// I12: a snapshot and a log that tell two histories: nothing goes on from either before somebody has looked.
#[test]
fn a_snapshot_of_another_history_is_named_and_not_restored() {
    let mut home = Home::new(&[""]);
    home.say("paint it red");
    let snapshots = keep(&home, 10);
    let (file, snapshot) = snapshots.take_now(home.session, SnapshotReason::Request).expect("taken");
    let other = KeptSnapshot { h: Some("0123456789abcdef".parse().expect("a hash")), ..snapshot };
    let forged = snapshots.kept().write(&other, file.compression()).expect("written").name;
    assert_ne!(forged, file.name);
    for in_place in [false, true] {
        let new = NewSnapshotRestore { in_place, ..NewSnapshotRestore::default() };
        let refused = restore(&home, &snapshots, forged, &new).expect_err("another history");
        assert_eq!((refused.code, refused.hint), (Code::SnapshotCorrupted, Some(Hint::ExamineHome)));
        assert!(refused.message.contains(&forged.to_string()), "{}", refused.message);
    }
    assert!(!home.state().closed && snapshots.counts.failed_restores.get() == 2);
    restore(&home, &snapshots, file.name, &NewSnapshotRestore::default()).expect("the true one is");
}

#[test]
fn a_snapshot_that_cannot_be_restored_says_why_and_counts() {
    let mut home = Home::new(&[""]);
    home.say("paint it red");
    let snapshots = keep(&home, 10);
    let (file, _) = snapshots.take_now(home.session, SnapshotReason::Request).expect("taken");
    let refused = |name, new: &NewSnapshotRestore| {
        let refused = restore(&home, &snapshots, name, new).expect_err("refused");
        (refused.code, snapshots.counts.failed_restores.get())
    };
    let plain = NewSnapshotRestore::default();
    let missing = SnapshotName { seq: file.name.seq, number: 7 };
    assert_eq!(refused(missing, &plain), (Code::SnapshotNotFound, 0));
    let files = NewSnapshotRestore { files: true, ..NewSnapshotRestore::default() };
    assert_eq!(refused(file.name, &files), (Code::CheckpointMissing, 0));
    let path = Layout::new("/home").history(home.session).join(file.path.file_name().expect("a name"));
    assert!(home.disk.disk.flip_byte(&path, file.size / 2));
    assert_eq!(refused(file.name, &plain), (Code::SnapshotCorrupted, 1));
    assert!(!home.state().closed);
}
