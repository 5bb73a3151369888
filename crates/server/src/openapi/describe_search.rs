//! What the operation is about that searches the logs of sessions.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::filter::SearchFilter;
use rekindle_wire::view::SearchPage;
use serde_json::json;

use super::operation::Operation;

pub(crate) fn search() -> Operation {
    let found = json!({
        "session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "title": "Fix the flaky test", "working_dir": "/src/app", "seq": 3,
        "at": "2026-02-21T10:00:00.000Z", "found_in": "prompt",
        "excerpt": [{"text": "Fix the ", "matched": false}, {"text": "flaky", "matched": true}, {"text": " test", "matched": false}],
    });
    Operation::new::<SearchPage>("sessions", "searchSessions", "Search what was said and done in sessions")
        .answers(StatusCode::OK, "A page of records that have all the words.")
        .more(
            "What people and agents said, commands, questions and names of files are searched, in the newest session first, and in \
             each the newest record first. What an agent thought, what its tools answered, and payloads that are kept apart from the \
             log are not. One request reads a bounded part of the logs: a page may be short, or empty, and still name a next one.",
        )
        .query::<SearchFilter>()
        .example(json!({"matches": [found], "next": null, "unreadable": 0}))
        .refuses([Code::InvalidCursor])
}
