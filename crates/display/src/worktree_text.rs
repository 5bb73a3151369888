//! What became of a session's worktree, and what can be done about it, in words.

use rekindle_domain::projector::SessionStatus;
use rekindle_wire::view::{SessionView, WorktreeView};

use crate::hints::ours;

/// What can be done with a session because of its worktree.
pub(crate) enum WorktreeNext {
    /// Before anything else.
    First(String),
    /// And nothing else.
    Instead(String),
}

/// Says what became of a worktree.
pub fn worktree_text(worktree: &WorktreeView) -> String {
    let WorktreeView { branch, origin, merged_into, .. } = worktree;
    if !worktree.owned {
        return format!("{branch}, in a worktree made for {origin} that another session has");
    }
    let merged = merged_into.as_ref().map(|into| format!(", merged into {into}")).unwrap_or_default();
    match (worktree.removed, &worktree.commit) {
        (true, _) => format!("{branch}, in a worktree made for {origin}{merged}; it was removed"),
        (false, None) => format!("{branch}, in a worktree for {origin} that does not exist yet"),
        (false, Some(_)) => format!("{branch}, in a worktree made for {origin}{merged}"),
    }
}

/// Says what can be done about the worktree of a session whose agent is at rest.
pub(crate) fn next_of_worktree(session: &SessionView) -> Option<WorktreeNext> {
    let worktree = session
        .worktree
        .as_ref()
        .filter(|worktree| worktree.owned && session.status == SessionStatus::Idle)?;
    let id = session.id;
    if worktree.removed {
        let log = ours(format_args!("log {id}"));
        return Some(WorktreeNext::Instead(format!(
            "its worktree was removed; {log} shows what it did there"
        )));
    }
    worktree.commit.as_ref()?;
    let (diff, merge) = (ours(format_args!("task diff {id}")), ours(format_args!("task merge {id}")));
    Some(WorktreeNext::First(format!("{diff} shows what it did in its worktree, {merge} brings that back")))
}
