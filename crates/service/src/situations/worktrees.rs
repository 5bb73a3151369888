//! Worktrees of sessions that were rewound or forked: whoever takes the place of a session takes its worktree over, and nobody else
//! merges or removes it, whoever dies when.

use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    DirtyPolicy, Restoring, SessionClosed, SessionWorktree, SessionWorktreeRemoved, Worktree,
};
use rekindle_domain::fork::{Wishes, fork};
use rekindle_domain::id::SessionId;
use rekindle_store::commit::Append;
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::filter::Filter;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{MergeWorktree, NewFilesRestore, NewFork, NewRewind};

use super::home::{Home, Setup};
use crate::commands::session_worktree::{self, Tools};
use crate::commands::{Locks, rewind};
use crate::drive::workspace_files::FilesError;
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::workspaces::Workspaces;

fn wanted() -> Worktree {
    Worktree::wanted(SessionWorktree {
        origin: "/repo".into(),
        repository: "/repo/.git".into(),
        directory: "/trees/repo-1".into(),
        branch: "rekindle/one".into(),
        base: None,
        dirty: DirtyPolicy::Refuse,
    })
}

fn made() -> Worktree {
    Worktree { commit: Some("c0ffee".into()), ..wanted() }
}

/// A home whose session works in a worktree.
fn home_with(worktree: Worktree, lives: &[&'static str]) -> Home {
    Home::with(Setup { worktree: Some(worktree), ..Setup::default() }, lives)
}

/// Rewinds the home's session, and goes on with what takes its place in the daemon that comes next.
fn rewound(home: &mut Home) -> Result<SessionId> {
    let new = NewRewind::default();
    let successor = rewind::rewind(&home.views(), &Locks::default(), home.session, &new, (None, "test"))?;
    home.go_on_with(successor);
    Ok(successor)
}

fn workspaces(home: &Home) -> Workspaces {
    Workspaces::new(Arc::new(home.disk.clone()), Layout::new("/home"))
}

/// Tells whether a session is shown as one that merges and removes its worktree.
fn is_shown_as_owner(home: &Home, session: SessionId) -> bool {
    let views = home.views();
    let entry = views.directory.get(views.store(), session).expect("there");
    views.session(&entry).worktree.expect("shown").owned
}

/// Asks for the diff, the merge and the removal of a session's worktree, all of which are refused in the same way; returns how.
fn refused(home: &Home, session: SessionId) -> ServiceError {
    let views = home.views();
    let workspaces = workspaces(home);
    let tools = Tools { views: &views, workspaces: &workspaces, locks: &Locks::default() };
    let merge = MergeWorktree::default();
    let diff = session_worktree::diff(&tools, session, false).expect_err("no diff");
    let merge = session_worktree::merge(&tools, session, &merge, "test").expect_err("no merge");
    let remove = session_worktree::remove(&tools, session, true, "test").expect_err("no removal");
    assert_eq!((diff.text(), merge.text()), (remove.text(), remove.text()));
    remove
}

/// Returns the sessions that own a worktree.
fn owners(home: &Home) -> Vec<SessionId> {
    let views = home.views();
    let owners = views.directory.find_all(views.store(), |entry| entry.state.owned_worktree().is_some());
    owners.iter().map(|entry| entry.state.id).collect()
}

#[test]
fn whoever_takes_the_place_of_a_session_takes_its_worktree_over() {
    let merged = Worktree { merged_into: Some("main".into()), ..made() };
    for worktree in [made(), merged] {
        let mut home = home_with(worktree.clone(), &["", "", ""]);
        let first = home.session;
        home.say("paint it red");
        home.say("paint it blue");
        let second = rewound(&mut home).expect("rewound");
        assert_eq!(home.state().worktree.as_deref(), Some(&worktree));
        assert_eq!((home.state().origin(), owners(&home)), ("/repo", vec![second]));
        let why = refused(&home, first);
        assert_eq!(why.code, Code::WorktreeMissing);
        assert!(why.text().contains(second.as_str()), "{}", why.text());
        // Nothing is made again for what is said there.
        home.say("paint it green");
        assert_eq!((home.status(), home.count("session.worktree_added")), ("idle", 0));
        // Once more: both of those before it name the one that has it now.
        let third = rewound(&mut home).expect("rewound again");
        assert_eq!(owners(&home), [third]);
        for before in [first, second] {
            let why = refused(&home, before);
            assert!(why.text().contains(third.as_str()), "{}", why.text());
            assert!(!is_shown_as_owner(&home, before));
        }
        assert!(is_shown_as_owner(&home, third));
        // What its owner has removed is nobody's.
        let removed = SessionWorktreeRemoved { bundle: None, by: "anna".into() };
        home.workers().records.append(third, vec![removed.into()]).expect("recorded");
        assert!(refused(&home, third).text().contains("was removed"));
        assert!(refused(&home, first).text().contains(second.as_str()));
        assert_eq!(owners(&home), []);
    }
}

#[test]
fn one_that_could_not_be_made_is_made_for_whoever_takes_its_place() {
    let mut home = home_with(wanted(), &["", ""]);
    let first = home.session;
    home.say("paint it red");
    assert_eq!((home.count("run.failed"), home.state().missing_worktree().is_some()), (1, true));
    let second = rewound(&mut home).expect("rewound");
    assert_eq!((home.state().missing_worktree(), owners(&home)), (Some(&wanted().wanted), vec![second]));
    assert!(refused(&home, first).text().contains(second.as_str()));
}

// Its directory is gone, so nothing can go on there; a fork goes on elsewhere.
#[test]
fn a_session_whose_worktree_was_removed_is_not_rewound() {
    let mut home = home_with(made(), &["", ""]);
    home.say("paint it red");
    let removed = SessionWorktreeRemoved { bundle: None, by: "anna".into() };
    home.workers().records.append(home.session, vec![removed.into()]).expect("recorded");
    let before = home.state().last_seq;
    let files_only = NewFilesRestore { to: None, force: false };
    for refused in [
        rewind::plan(&home.views(), home.session, &NewRewind::default()).map(drop),
        rewind::restore_files(&home.views(), home.session, &files_only, "test").map(drop),
        rewound(&mut home).map(drop),
    ] {
        let refused = refused.expect_err("refused");
        assert_eq!((refused.code, refused.hint), (Code::WorktreeMissing, Some(Hint::ForkElsewhere)));
    }
    assert_eq!((home.state().closed, home.state().last_seq), (false, before));
    let elsewhere = NewFork { working_dir: Some("/".into()), ..NewFork::default() };
    home.fork(elsewhere).expect("forked");
    assert_eq!(home.state().worktree, None);
}

#[test]
fn a_fork_works_in_the_worktree_of_another_session_and_is_found_where_that_is() {
    let mut home = home_with(made(), &["", ""]);
    let owner = home.session;
    home.say("paint it red");
    home.fork(NewFork::default()).expect("forked");
    let fork = home.session;
    assert_eq!((home.state().origin(), owners(&home)), ("/repo", vec![owner]));
    let views = home.views();
    let filter = Filter { cwd: Some("/repo".into()), ..Filter::default() };
    let found = views.list_sessions(&filter).expect("a list").sessions;
    assert_eq!(found.iter().filter(|session| session.id == fork).count(), 1);
    drop(views);
    assert!(refused(&home, fork).text().contains(owner.as_str()));
    // That is so for whoever takes its place, too, and for one that is forked from it.
    home.say("paint it green");
    let successor = rewound(&mut home).expect("rewound");
    home.fork(NewFork::default()).expect("forked");
    assert!(
        [fork, successor, home.session]
            .map(|one| refused(&home, one))
            .iter()
            .all(|why| { why.text().contains("/trees/repo-1") && why.code == Code::WorktreeMissing })
    );
    assert_eq!(owners(&home), [owner]);
    // Where its owner is gone nobody has it.
    home.go_on_with(owner).delete().expect("removed");
    assert!(refused(&home, successor).text().contains("was removed"));
}

// Files are put back in it first: what would be merged, or thrown away, is not what was asked for.
#[test]
fn a_worktree_in_which_files_are_being_restored_is_left_alone() {
    let mut home = home_with(made(), &["", ""]);
    home.say("paint it red");
    let parent = home.state();
    locked(&home.files.errors).push(FilesError::NotYet("no room".into()));
    let point = home.store().fork_point(parent.id, parent.last_seq).expect("readable").expect("a record");
    let restoring = Some(Restoring::new(BlobId::of(b"tree")));
    let wishes = Wishes { restoring, takes_place: true, ..Wishes::default() };
    let successor = SessionId::mint(9, 9);
    let closed = SessionClosed { by: None, replaced_by: Some(successor) };
    let created = vec![fork(&parent, point, wishes).into()];
    let append = Append::durable(successor, created).and(parent.id, vec![closed.into()]);
    home.store().fork(append).expect("recorded");
    home.go_on_with(successor);
    let views = home.views();
    let workspaces = workspaces(&home);
    let tools = Tools { views: &views, workspaces: &workspaces, locks: &Locks::default() };
    let merge = session_worktree::merge(&tools, successor, &MergeWorktree::default(), "test");
    let remove = session_worktree::remove(&tools, successor, true, "test");
    assert_eq!((merge.expect_err("busy").code, remove.expect_err("busy").code), (Code::Busy, Code::Busy));
    assert_eq!(owners(&home), [successor]);
}

// I4, I14: one append says both that a session is closed and that another has its worktree.
#[test]
fn a_worktree_has_one_owner_whenever_the_daemon_dies_in_a_rewind() {
    let make = || {
        let mut home = home_with(made(), &["", ""]);
        home.say("paint it red");
        home.say("paint it blue");
        home
    };
    let rewind = |home: &Home| {
        rewind::rewind(&home.views(), &Locks::default(), home.session, &NewRewind::default(), (None, "test"))
    };
    let whole = make();
    let begin = whole.writes();
    rewind(&whole).expect("rewound");
    let writes = whole.writes() - begin;
    assert!(writes > 1, "it writes {writes} times");
    drop(whole);
    let mut outcomes = [0, 0];
    for number in 0..=writes {
        let mut home = make();
        home.stop_writing_after(number);
        let told = rewind(&home);
        home.restart_after_last_write();
        let parent = home.state();
        let expected = parent.replaced_by.unwrap_or(parent.id);
        assert_eq!(owners(&home), [expected], "dies after {number} of {writes} writes");
        assert!(told.is_err() || told.ok() == parent.replaced_by, "what was told is so: {number}");
        outcomes[usize::from(parent.closed)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}
