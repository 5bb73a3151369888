//! Rewinds: a session that takes the place of another, and files that are restored before anything begins in it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    ChangedFile, FileChange, GitWorktree, Restoring, SessionClosed, SessionWorktree,
};
use rekindle_domain::fork::{Wishes, fork};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::session::SessionState;
use rekindle_store::commit::Append;
use rekindle_wire::code::Code;
use rekindle_wire::request::NewRewind;

use super::home::Home;
use super::table::Table;
use crate::commands::{Locks, rewind};
use crate::drive::workspace_files::{FilesError, FilesRestored, RestoreFiles};
use crate::error::Result;
use crate::lock::locked;
use crate::workspaces::CaptureFacts;
use crate::workspaces::session_worktree::add::Added;
use crate::workspaces::session_worktree::prepare::Surroundings;

/// Files that are said to be restored: what was asked for, and what comes of it next.
#[derive(Default)]
pub(super) struct ScriptedFiles {
    pub(super) asked: Mutex<Vec<BlobId>>,
    pub(super) errors: Mutex<Vec<FilesError>>,
    pub(super) worktrees: Mutex<Vec<(GitWorktree, PathBuf)>>,
}

impl RestoreFiles for ScriptedFiles {
    fn add_session_worktree(
        &self,
        _: &SessionWorktree,
        _: &Path,
        _: &Surroundings<'_>,
    ) -> Result<Added, FilesError> {
        Err(FilesError::Failed("no worktrees here".into()))
    }

    fn add_worktree(&self, worktree: &GitWorktree, root: &Path, _: u32) -> Result<(), FilesError> {
        locked(&self.worktrees).push((worktree.clone(), root.to_owned()));
        Ok(())
    }

    fn note_recorded(&self, _: &Path) {}

    fn restore_files(
        &self,
        _: &str,
        tree: BlobId,
        _: &CaptureFacts,
        _: &Path,
    ) -> Result<FilesRestored, FilesError> {
        locked(&self.asked).push(tree);
        match locked(&self.errors).pop() {
            Some(error) => Err(error),
            None => {
                let file = ChangedFile { path: b"wall".as_slice().into(), change: FileChange::Modified };
                Ok(FilesRestored { undo: BlobId::of(b"before"), changed: 2, files: vec![file], left: 0 })
            }
        }
    }
}

/// Rewinds the home's session, and goes on with what takes its place in the daemon that comes next.
fn rewound(home: &mut Home, to: Option<RunId>) -> Result<SessionId> {
    let new = NewRewind { to, ..NewRewind::default() };
    let successor = rewind::rewind(&home.views(), &Locks::default(), home.session, &new, (None, "test"))?;
    home.go_on_with(successor);
    Ok(successor)
}

#[test]
fn a_rewind_closes_the_session_and_goes_on_before_its_latest_run() {
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    let undone = home.say("paint it blue");
    let parent = home.session;
    let plan = rewind::plan(&home.views(), parent, &NewRewind::default()).expect("a plan");
    assert_eq!((plan.run_id, plan.tree), (undone, None));
    let successor = rewound(&mut home, None).expect("rewound");
    let state = home.state();
    assert_eq!(state.forked_from.map(|from| (from.session_id, from.seq)), Some((parent, plan.seq)));
    assert_eq!((state.title.as_str(), state.closed), ("t", false));
    home.say("paint it green");
    let prompt = home.prompted();
    assert!(prompt.contains("red") && !prompt.contains("blue"), "{prompt}");
    home.go_on_with(parent);
    assert_eq!((home.state().closed, home.state().replaced_by), (true, Some(successor)));
    let refused = home.message().expect_err("it takes none");
    assert_eq!(refused.code, Code::SessionClosed);
    assert!(refused.text().contains(successor.as_str()), "{}", refused.text());
    assert_eq!(rewound(&mut home, None).expect_err("once").code, Code::SessionClosed);
}

#[test]
fn a_session_that_took_anothers_place_goes_further_back_in_its_history() {
    let mut home = Home::new(&["", "", ""]);
    home.say("paint it red");
    home.say("paint it blue");
    let first = rewound(&mut home, None).expect("rewound");
    assert!(home.state().run.is_none(), "nothing was asked in it");
    let second = rewound(&mut home, None).expect("rewound again");
    assert_ne!(first, second);
    home.say("paint it green");
    let prompt = home.prompted();
    assert!(!prompt.contains("red") && !prompt.contains("blue"), "{prompt}");
    rewound(&mut home, None).expect("back before green");
    assert_eq!(rewound(&mut home, None).expect_err("that was the beginning").code, Code::NothingToUndo);
}

#[test]
fn a_rewind_is_refused_where_there_is_nothing_or_something_goes_on() {
    let mut home = Home::new(&["hang"]);
    assert_eq!(rewound(&mut home, None).expect_err("nothing was asked").code, Code::NothingToUndo);
    home.say("paint it red");
    assert_eq!(rewound(&mut home, None).expect_err("it runs").code, Code::StillRunning);
}

/// Puts a session with files to be restored into the place of the home's, as a daemon leaves it that dies right behind the record.
fn recorded(home: &mut Home, tree: BlobId) -> SessionId {
    let (parent, successor) = (home.state(), SessionId::mint(9, 9));
    let seq = parent.last_seq;
    let point = home.store().fork_point(parent.id, seq).expect("readable").expect("a record");
    let wishes = Wishes { restoring: Some(Restoring::new(tree)), ..Wishes::default() };
    let created = fork(&SessionState::clone(&parent), point, wishes);
    let closed = vec![SessionClosed::default().into()];
    home.store()
        .fork(Append::durable(successor, vec![created.into()]).and(parent.id, closed))
        .expect("recorded");
    home.go_on_with(successor);
    successor
}

// I13, I14: whoever comes after a crash finishes it, once, and nothing begins before.
#[test]
fn files_are_restored_by_whoever_comes_and_prompts_wait_for_that() {
    let tree = BlobId::of(b"tree");
    let mut table = Table::default();
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    recorded(&mut home, tree);
    table.row("at once", &mut home, "session.files_restored", "idle", "");
    home.restart();
    table.row("once", &mut home, "", "idle", "");
    assert_eq!(*locked(&home.files.asked), [tree]);
    // No room: it is tried again, what is sent meanwhile waits, and is done then.
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    locked(&home.files.errors)
        .extend([FilesError::NotYet("no room".into()), FilesError::NotYet("no room".into())]);
    recorded(&mut home, tree);
    table.row("short", &mut home, "", "idle", "its files cannot be restored yet: no room");
    home.send();
    table.row(
        "queued",
        &mut home,
        "message.user queued",
        "idle",
        "its files cannot be restored yet: no room",
    );
    home.wait_long();
    let done = "session.files_restored; run.started; agent.launching; session.restored reprimed; input.queued prompt; message.agent; run.completed";
    table.row("done", &mut home, done, "idle", "");
    // What cannot be done at all is said, and the session goes on.
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    locked(&home.files.errors).push(FilesError::Failed("the tree is gone".into()));
    recorded(&mut home, tree);
    table.row("failed", &mut home, "session.files_restored", "idle", "");
    table.done(6);
}
