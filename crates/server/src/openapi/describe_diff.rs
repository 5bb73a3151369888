//! What the operation is about that tells what a run did to its files.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::view::RunDiff;
use serde_json::json;

use super::operation::Operation;
use crate::routes::diff::WhichDiff;

pub(crate) fn get_session_diff() -> Operation {
    let diff = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
    let example = json!({
        "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "from": "0".repeat(64), "to": "1".repeat(64), "how": "live",
        "rules_differ": false, "total": 1, "lines_added": 1, "lines_removed": 1,
        "files": [{"path": "a.txt", "change": "modified", "lines_added": 1, "lines_removed": 1, "diff": diff}],
    });
    Operation::new::<RunDiff>("sessions", "getSessionDiff", "Tell what a run did to its files")
        .answers(StatusCode::OK, "What is different between its two checkpoints.")
        .more(
            "Which files came, went or changed, with their unified diffs. A file has no `diff` where there is too much of \
             it, and only the first two thousand files are listed. An end that is `late` was captured by a daemon that came \
             after it: what changed need not be the agent's work.",
        )
        .of_session()
        .query::<WhichDiff>()
        .example(example)
        .refuses([Code::CheckpointMissing, Code::Internal, Code::SnapExpired, Code::Storage])
}
