//! What the operations are about that handle the worktree of a session.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::request::MergeWorktree;
use rekindle_wire::view::{WorktreeDiff, WorktreeMerged, WorktreeRemoved};
use serde_json::json;

use super::operation::Operation;
use crate::routes::worktree::{Force, HowMuch};

const BRANCH: &str = "rekindle/fix-the-test-2c9d4e7f";

pub(crate) fn get_worktree_diff() -> Operation {
    let diff = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
    Operation::new::<WorktreeDiff>("sessions", "getWorktreeDiff", "Tell what a session's worktree has")
        .answers(StatusCode::OK, "What is different since it parted from its directory.")
        .more(
            "Everything behind the last commit that the worktree and the directory have in common which it was made for, committed \
             or not, new files too, but for those that git ignores: what a merge would bring. At most 1 MiB of the diff is told, and \
             a thousand files; the numbers are of all. Nothing is written into the repository.",
        )
        .of_session()
        .query::<HowMuch>()
        .example(json!({
            "branch": BRANCH, "base": "0123456789abcdef0123456789abcdef01234567", "commits": 2, "uncommitted": 1, "total": 1,
            "lines_added": 1, "lines_removed": 1, "files": [{"path": "a.txt", "lines_added": 1, "lines_removed": 1}],
            "diff": diff, "cut": false,
        }))
        .refuses([Code::GitMissing, Code::MergeImpossible, Code::Storage, Code::WorktreeMissing])
}

pub(crate) fn merge_worktree() -> Operation {
    Operation::new::<WorktreeMerged>("sessions", "mergeWorktree", "Merge a session's worktree")
        .answers(StatusCode::OK, "Its directory has everything that it had.")
        .more(
            "Commits what is not committed in the worktree, with the session's title as the message, and brings its commits into \
             the branch that the directory is at which it was made for. What comes of both is put together elsewhere first: a \
             conflict leaves both as they are (409 `merge_conflict`), and so does what is not committed in the directory and would \
             be overwritten. No hooks are run, and nothing is signed. No run may go on in either. Asked again, it does nothing.",
        )
        .of_session()
        .body_if_any::<MergeWorktree>(vec![
            ("as git merges", json!({})),
            ("as one commit", json!({"method": "squash", "message": "Fix the flaky test"})),
        ])
        .example(json!({
            "branch": BRANCH, "into": "main", "commit": "0123456789abcdef0123456789abcdef01234567", "commits": 2,
            "committed": true,
        }))
        .appends()
        .refuses([Code::GitMissing, Code::MergeConflict, Code::MergeImpossible, Code::StillRunning])
        .refuses([Code::Busy, Code::WorktreeMissing])
}

pub(crate) fn remove_worktree() -> Operation {
    Operation::new::<WorktreeRemoved>("sessions", "removeWorktree", "Remove a session's worktree")
        .answers(StatusCode::OK, "It is gone; the session's log stays.")
        .more(
            "With its branch, if that was made for it. One that has commits which are in no other branch, or files that are not \
             committed, is refused (409 `worktree_unsaved`); with `force` these are saved in a git bundle first, which is kept for \
             30 days and from which `git fetch FILE BRANCH` brings them back. Work inside of submodules and other repositories in it \
             keeps it in any case. Files that git ignores go with it.",
        )
        .of_session()
        .query::<Force>()
        .example(json!({
            "directory": "/home/anna/.local/share/rekindle/worktrees/shop-2c9d4e7f", "branch": BRANCH, "branch_kept": false,
            "bundle": null,
        }))
        .appends()
        .refuses([Code::Busy, Code::GitMissing, Code::MergeImpossible, Code::StillRunning])
        .refuses([Code::WorktreeLocked, Code::WorktreeMissing, Code::WorktreeUnsaved])
}
