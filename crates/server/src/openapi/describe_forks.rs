//! What the operations that fork a session, or take it back, are about.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::request::{NewFilesRestore, NewFork, NewRewind};
use rekindle_wire::view::{FilesRestoring, Forked, RewindPlan, Rewound};
use serde_json::json;

use super::describe::session;
use super::operation::Operation;
use crate::routes::forks::To;

const OK: StatusCode = StatusCode::OK;
const CREATED: StatusCode = StatusCode::CREATED;

pub(crate) fn fork_session() -> Operation {
    let mut child = session();
    child["forked_from"] = json!({"session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "seq": 7});
    let notice =
        "its first prompt begins with what happened up to there: the agent's own memory is not carried over";
    Operation::new::<Forked>("sessions", "forkSession", "Fork a session")
        .answers(CREATED, "The new session, which is on disk.")
        .more(
            "It has the history of this one up to a point between two runs and goes its own way from there; this one stays as \
             it is, and nothing is copied. Its records are numbered on from that point. Files are not touched, unless `files` asks \
             for those of the checkpoint at the cut, in the same directory or in a new or empty one, or `worktree` in a worktree of git of its own: then messages queue until the \
             log says `session.files_restored`. Whoever answers in it, the same agent or another, is told with the first prompt what happened before: `verdict` is `reprimed`.",
        )
        .of_session()
        .body_if_any::<NewFork>(vec![
            ("behind the newest run that has ended", json!({})),
            ("with another agent", json!({"at": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "agent": "codex", "title": "Again"})),
            ("by the number of a record", json!({"at": 148, "working_dir": "/repo-2"})),
            ("with the files of then", json!({"at": 148, "working_dir": "/repo-3", "files": true})),
            ("in a worktree of its own", json!({"worktree": true})),
        ])
        .answer_header("Location", "The path of the session.")
        .example(json!({"session": child, "files": "left", "verdict": "reprimed", "notice": notice}))
        .appends()
        .refuses([
            Code::AgentUnknown,
            Code::CheckpointMissing,
            Code::CommitMissing,
            Code::DirectoryNotEmpty,
            Code::GitMissing,
            Code::HistoryMissing,
            Code::InvalidAgent,
            Code::InvalidAt,
            Code::InvalidEnv,
            Code::InvalidWorkingDir,
            Code::NotARepository,
            Code::RecordUnknown,
            Code::RunNotInSession,
            Code::SettingUnknown,
            Code::SnapExpired,
            Code::StillRunning,
        ])
        .takes_idempotency_key()
}

pub(crate) fn plan_rewind() -> Operation {
    Operation::new::<RewindPlan>("sessions", "planRewind", "Tell what a rewind would do")
        .answers(OK, "Where the session would be again. Nothing is done.")
        .of_session()
        .query::<To>()
        .example(json!({
            "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "seq": 7, "tree": null, "working_dir": "/repo",
        }))
        .refuses([Code::HistoryMissing, Code::InvalidQuery, Code::NothingToUndo, Code::RunNotInSession])
        .refuses([Code::SessionClosed, Code::SessionDamaged, Code::SessionNewer, Code::SessionQuarantined])
        .refuses([Code::StillRunning, Code::Storage, Code::WorktreeMissing])
}

pub(crate) fn rewind_session() -> Operation {
    let mut successor = session();
    successor["forked_from"] = json!({"session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "seq": 7});
    let notice =
        "its first prompt begins with what happened up to there: the agent's own memory is not carried over";
    Operation::new::<Rewound>("sessions", "rewindSession", "Take a session back to before a run")
        .answers(CREATED, "The session that takes its place, which is on disk.")
        .more(
            "A fork that ends before the run's prompt, and the close of this session, in one step. If a checkpoint was taken \
             before that run, the files are made what they were then: messages queue until the log says \
             `session.files_restored`. What was overwritten is kept first. A worktree of the session's own is its successor's \
             from then on; where it was removed, nothing is rewound (409 `worktree_missing`).",
        )
        .of_session()
        .body_if_any::<NewRewind>(vec![
            ("before the latest run", json!({})),
            ("the conversation alone", json!({"to": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "files": false})),
        ])
        .answer_header("Location", "The path of the session.")
        .example(json!({
            "session": successor, "replaces": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "files": "restored",
            "verdict": "reprimed", "notice": notice,
        }))
        .appends()
        .refuses([Code::HistoryMissing, Code::NothingToUndo, Code::RunNotInSession, Code::SessionClosed])
        .refuses([Code::StillRunning, Code::WorktreeMissing])
        .takes_idempotency_key()
}

pub(crate) fn restore_files() -> Operation {
    Operation::new::<FilesRestoring>("sessions", "restoreFiles", "Put a session's files back to before a run")
        .answers(StatusCode::ACCEPTED, "It is recorded, and will be done.")
        .more(
            "The session goes on as it is: only its directory is made what it was before that run's prompt. Messages queue until \
             the log says `session.files_restored`, with the way back, and its agent is told with the next prompt which files \
             were changed. What was overwritten is kept first. `GET …/rewind` tells beforehand what the files will be.",
        )
        .of_session()
        .body_if_any::<NewFilesRestore>(vec![
            ("before the latest run", json!({})),
            ("before another", json!({"to": "run_01khz0p6r8vk6mqj3b8y2c9d4e"})),
        ])
        .example(json!({
            "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e",
            "tree": "4df9e30ab1d947d54df9e30ab1d947d54df9e30ab1d947d54df9e30ab1d947d5",
            "working_dir": "/repo", "seq": 149,
        }))
        .appends()
        .refuses([Code::CheckpointMissing, Code::HistoryMissing, Code::NothingToUndo, Code::RunNotInSession])
        .refuses([Code::SessionClosed, Code::SnapExpired, Code::StillRunning, Code::WorktreeMissing])
}
