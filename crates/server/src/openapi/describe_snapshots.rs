//! What the operations on kept snapshots are about.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::request::NewSnapshotRestore;
use rekindle_wire::view::{RestoredSession, SnapshotDetail, SnapshotList, SnapshotView};
use serde_json::{Value, json};

use super::describe::session;
use super::operation::Operation;
use crate::routes::sessions::{Done, Nothing};

pub(crate) fn list_snapshots() -> Operation {
    Operation::new::<SnapshotList>("sessions", "listSnapshots", "List a session's kept snapshots")
        .answers(StatusCode::OK, "The snapshots, the latest first.")
        .more(
            "A snapshot is the session as of one record of its log: who answers, settings, the agent's own session, waits, usage. \
             Messages are not in it: they are the log up to that record. One whose file is damaged, or of a newer version, is in \
             the list with its `problem`.",
        )
        .of_session()
        .example(json!({"snapshots": [snapshot()]}))
        .refuses([Code::Storage])
}

pub(crate) fn take_snapshot() -> Operation {
    Operation::new::<SnapshotView>("sessions", "takeSnapshot", "Take a snapshot of a session and keep it")
        .answers(StatusCode::CREATED, "It is on disk.")
        .more("Also of a session that takes none by itself. Whatever the session does meanwhile goes on.")
        .of_session()
        .body_if_any::<Nothing>(Vec::new())
        .answer_header("Location", "The path of the snapshot.")
        .example(snapshot())
        .appends()
}

pub(crate) fn get_snapshot() -> Operation {
    let mut example = snapshot();
    let more = json!({
        "session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "h": "4df9e30ab1d947d5", "title": "fix the failing test",
        "working_dir": "/repo", "agent": "claude", "model": null, "mode": null, "cursor": "…", "run": null, "waits": 0,
        "queued": 0, "usage": {"input_tokens": 0, "output_tokens": 0, "cost": null}, "state": {"version": 1},
    });
    if let (Value::Object(example), Value::Object(more)) = (&mut example, more) {
        example.remove("problem");
        example.extend(more);
    }
    Operation::new::<SnapshotDetail>("sessions", "getSnapshot", "Show a kept snapshot")
        .answers(StatusCode::OK, "What the session was then.")
        .of_session()
        .of_snapshot()
        .example(example)
        .refuses([Code::SnapshotCorrupted, Code::SnapshotVersion, Code::Storage])
}

pub(crate) fn restore_snapshot() -> Operation {
    let mut child = session();
    child["forked_from"] = json!({"session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "seq": 12});
    let notice =
        "its first prompt begins with what happened up to there: the agent's own memory is not carried over";
    Operation::new::<RestoredSession>("sessions", "restoreSnapshot", "Go on from a kept snapshot")
        .answers(StatusCode::CREATED, "The session that goes on from it, which is on disk.")
        .more(
            "A fork at the snapshot's record, with the agent and settings that the session has now; or, `in_place`, a rewind to \
             it: the fork takes title, directory and key over, and this session is closed. With `files` the directory is made \
             what it was then: messages queue until the log says `session.files_restored`. A snapshot of a session in the \
             middle of a run counts as the end of the run before. `warnings` says what is not as it was: an agent that does not \
             take up its own session there is told what happened (`agent_cannot_load`).",
        )
        .of_session()
        .of_snapshot()
        .body_if_any::<NewSnapshotRestore>(vec![
            ("beside the session", json!({})),
            ("in its place, with its files", json!({"in_place": true, "files": true})),
        ])
        .answer_header("Location", "The path of the session.")
        .example(json!({
            "session": child, "snapshot": "12-1", "replaces": null, "files": "left", "verdict": "reprimed",
            "notice": notice, "warnings": [{"code": "agent_cannot_load", "message": notice}],
        }))
        .appends()
        .refuses([Code::CheckpointMissing, Code::HistoryMissing, Code::InvalidWorkingDir])
        .refuses([Code::SessionClosed, Code::SnapExpired, Code::SnapshotCorrupted, Code::SnapshotVersion])
        .refuses([Code::StillRunning, Code::WorktreeMissing])
        .takes_idempotency_key()
}

pub(crate) fn remove_snapshot() -> Operation {
    Operation::new::<Done>("sessions", "removeSnapshot", "Remove a kept snapshot")
        .answers(StatusCode::NO_CONTENT, "It is gone; the session is as it was.")
        .without_content()
        .of_session()
        .of_snapshot()
        .refuses([Code::Storage, Code::StorageFull])
}

/// A snapshot, for examples.
fn snapshot() -> Value {
    json!({
        "name": "12-1", "seq": 12, "reason": "run_end", "created_at": "2026-02-21T10:03:15.000Z", "size_bytes": 731,
        "tree": null, "problem": null,
    })
}
