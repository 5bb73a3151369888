//! The worktree of a session, looked at, brought back and removed when somebody asks for it. Git does it first, and repeating it
//! does nothing twice, so that whoever dies before it is recorded leaves nothing but a request to repeat.

use std::path::Path;

use rekindle_domain::event::{SessionWorktreeMerged, SessionWorktreeRemoved, Worktree};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::MergeWorktree;
use rekindle_wire::view::{WorktreeDiff, WorktreeFile, WorktreeMerged, WorktreeRemoved};

use super::Locks;
use super::open_runs::refuse_open_runs;
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::show::{SessionEntry, Views};
use crate::test_knobs::crash_point;
use crate::workspaces::git::GitRepository;
use crate::workspaces::session_worktree::merge::Merge;
use crate::workspaces::session_worktree::remove::Removal;
use crate::workspaces::{GitError, WorkspaceError, Workspaces};

/// What worktrees of sessions are handled with.
pub(crate) struct Tools<'a> {
    pub(crate) views: &'a Views,
    pub(crate) workspaces: &'a Workspaces,
    pub(crate) locks: &'a Locks,
}

impl Tools<'_> {
    /// Returns where a session's own worktree is, by which it is locked.
    fn place(&self, session: SessionId) -> Result<String> {
        let state = self.views.store().open_session(session)?.state;
        Ok(own(self.views, &state)?.wanted.directory.clone())
    }
}

/// Says what a session's worktree has that its directory has not.
pub(crate) fn diff(tools: &Tools<'_>, session: SessionId, only_stat: bool) -> Result<WorktreeDiff> {
    let state = tools.views.store().open_session(session)?.state;
    let made = made(tools.views, &state)?;
    let scratch = tools.workspaces.worktree_scratch(session);
    let at = made.commit.as_deref();
    let diff = tools.workspaces.diff_session_worktree(&made.wanted, at, (&scratch, !only_stat));
    let diff = diff.map_err(refused)?;
    let file = |file: crate::workspaces::session_worktree::diff::FileDiff| WorktreeFile {
        path: file.path,
        lines_added: file.lines.map(|(added, _)| added),
        lines_removed: file.lines.map(|(_, removed)| removed),
    };
    Ok(WorktreeDiff {
        branch: made.wanted.branch.clone(),
        base: diff.base,
        commits: diff.commits,
        uncommitted: diff.uncommitted,
        total: diff.total,
        lines_added: diff.lines_added,
        lines_removed: diff.lines_removed,
        files: diff.files.into_iter().map(file).collect(),
        diff: diff.text,
        cut: diff.is_cut,
    })
}

/// Brings a session's worktree into the directory that it was made for, and records that.
pub(crate) fn merge(
    tools: &Tools<'_>,
    session: SessionId,
    asked: &MergeWorktree,
    by: &str,
) -> Result<WorktreeMerged> {
    let place = tools.place(session)?;
    let _alone = tools.locks.worktrees.lock(&place);
    let state = at_rest(tools, session)?;
    let wanted = &made(tools.views, &state)?.wanted;
    let original = GitRepository::around(Path::new(&wanted.origin));
    refuse_open_runs(tools.views, &original.map_err(|error| refused(error.into()))?.top)?;
    let scratch = tools.workspaces.worktree_scratch(session);
    let merged = tools.workspaces.merge_session_worktree(&Merge {
        worktree: wanted,
        message: asked.message.as_deref().unwrap_or(&state.title),
        method: asked.method,
        umask: tools.views.workers.agents.environment.umask(&state),
        scratch: &scratch,
    });
    let merged = merged.map_err(refused)?;
    crash_point("merge.before_record");
    let merged = WorktreeMerged {
        branch: wanted.branch.clone(),
        into: merged.into,
        commit: merged.commit,
        commits: merged.commits,
        committed: merged.committed,
    };
    let record = SessionWorktreeMerged {
        into: merged.into.clone().into(),
        commit: merged.commit.clone().into(),
        commits: merged.commits,
        method: asked.method,
        by: by.to_owned().into(),
    };
    tools.views.workers.records.append(session, vec![record.into()])?;
    Ok(merged)
}

/// Removes a session's worktree, and records that. What is nowhere else keeps it, unless it is forced to go: then that is saved.
pub(crate) fn remove(
    tools: &Tools<'_>,
    session: SessionId,
    is_forced: bool,
    by: &str,
) -> Result<WorktreeRemoved> {
    let place = tools.place(session)?;
    let _alone = tools.locks.worktrees.lock(&place);
    let state = at_rest(tools, session)?;
    // One whose making failed may have been begun.
    let wanted = &own(tools.views, &state)?.wanted;
    let workers = &tools.views.workers;
    let bundle = tools.workspaces.worktree_bundle(session);
    let removed = tools.workspaces.remove_session_worktree(&Removal {
        worktree: wanted,
        message: &state.title,
        umask: workers.agents.environment.umask(&state),
        bundle: is_forced.then_some(&bundle),
    });
    let removed = removed.map_err(refused)?;
    crash_point("rm.before_record");
    let bundle = removed.bundle.map(|bundle| bundle.display().to_string());
    let record = SessionWorktreeRemoved { bundle: bundle.clone().map(Into::into), by: by.to_owned().into() };
    workers.records.append(session, vec![record.into()])?;
    // One that is at rest there has nowhere to go on.
    workers.send(session, Command::Stop { why: "its worktree was removed", by: by.to_owned() })?;
    Ok(WorktreeRemoved {
        directory: wanted.directory.clone(),
        branch: wanted.branch.clone(),
        branch_kept: removed.keeps_branch,
        bundle,
    })
}

/// Returns a session in whose own worktree nobody is at work.
fn at_rest(tools: &Tools<'_>, session: SessionId) -> Result<std::sync::Arc<SessionState>> {
    let state = tools.views.store().open_session(session)?.state;
    let worktree = own(tools.views, &state)?;
    if state.restoring.is_some() {
        let message = "its files are being restored";
        return Err(ServiceError::new(Code::Busy, message).hint(Hint::TryAgain));
    }
    if state.open_run().is_some() || !state.queue.is_empty() {
        let message = "its run has not ended";
        return Err(ServiceError::new(Code::StillRunning, message).hint(Hint::CancelFirst));
    }
    refuse_open_runs(tools.views, Path::new(&worktree.wanted.directory))?;
    Ok(state)
}

/// Returns the worktree that is a session's own, which was made.
fn made<'a>(views: &Views, state: &'a SessionState) -> Result<&'a Worktree> {
    let worktree = own(views, state)?;
    match worktree.commit {
        Some(_) => Ok(worktree),
        None => Err(missing(format!("the worktree {} does not exist yet", worktree.wanted.directory))),
    }
}

/// Returns the worktree that is a session's own, made or begun.
fn own<'a>(views: &Views, state: &'a SessionState) -> Result<&'a Worktree> {
    if let Some(owned) = state.owned_worktree() {
        return Ok(owned);
    }
    let Some(worktree) = state.worktree.as_deref() else {
        return Err(missing("it has no worktree of its own".to_owned()));
    };
    let place = &worktree.wanted.directory;
    if worktree.removed {
        return Err(missing(format!("the worktree {place} was removed")));
    }
    Err(missing(match (owner_of(views, place), state.replaced_by) {
        (Some(owner), Some(_)) => format!("{owner} replaced it and has the worktree {place}"),
        (None, Some(successor)) => {
            format!("{successor} replaced it and had the worktree {place}, which was removed")
        }
        (Some(owner), None) => format!("the worktree {place} belongs to {owner}"),
        (None, None) => format!("the worktree {place} belonged to another session and was removed"),
    }))
}

/// Finds the session that merges and removes the worktree at a place.
fn owner_of(views: &Views, place: &str) -> Option<SessionId> {
    let owns = |entry: &SessionEntry| {
        !entry.state.deleted
            && entry.state.owned_worktree().is_some_and(|worktree| worktree.wanted.directory == place)
    };
    views.directory.find_all(views.store(), owns).first().map(|entry| entry.state.id)
}

fn missing(message: String) -> ServiceError {
    ServiceError::new(Code::WorktreeMissing, message)
}

/// Says why git did not do it, and what may help.
fn refused(error: WorkspaceError) -> ServiceError {
    use GitError as Git;
    let (code, hint) = match &error {
        WorkspaceError::Git(Git::Missing { .. }) => (Code::GitMissing, None),
        WorkspaceError::Git(Git::Conflict { .. }) => (Code::MergeConflict, Some(Hint::ResolveInWorktree)),
        WorkspaceError::Git(Git::InTheWay { .. }) => (Code::MergeImpossible, Some(Hint::CommitThere)),
        WorkspaceError::Git(Git::Detached { .. }) => (Code::MergeImpossible, Some(Hint::SwitchToBranch)),
        WorkspaceError::Git(Git::Unfinished { .. }) => (Code::MergeImpossible, Some(Hint::FinishThere)),
        WorkspaceError::Git(Git::Unsaved { .. }) => (Code::WorktreeUnsaved, Some(Hint::MergeOrForce)),
        WorkspaceError::Git(Git::Locked { .. }) => (Code::WorktreeLocked, Some(Hint::UnlockWorktree)),
        WorkspaceError::Git(Git::InnerRepository { .. }) => (Code::WorktreeUnsaved, Some(Hint::PushInside)),
        WorkspaceError::Git(Git::WorktreeMissing { .. }) => (Code::WorktreeMissing, None),
        WorkspaceError::Git(_) => (Code::MergeImpossible, None),
        WorkspaceError::Restoring { .. } => (Code::Busy, Some(Hint::TryAgain)),
        _ => (Code::Storage, None),
    };
    let refused = ServiceError::caused_by(code, error);
    match hint {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}
