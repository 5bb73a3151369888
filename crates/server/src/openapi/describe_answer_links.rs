//! Descriptions of answer links: links made, what a token is for, and the page that people see.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::request::ShownToken;
use rekindle_wire::view::{AnswerLinks, TokenView};
use serde_json::json;

use super::operation::Operation;
use crate::routes::sessions::Nothing;

pub(crate) fn create_answer_links() -> Operation {
    let link = |option: &str| {
        let id = format!("rt_01khz0p6r8vk6mqj3b8y2c9d4{option}");
        format!("https://box.example/answer#wait_01khz0p6r8vk6mqj3b8y2c9d4e.{id}.SECRET")
    };
    let example = json!({
        "links": [{"label": "Allow", "url": link("e")}, {"label": "Reject", "url": link("f")}],
        "expires_at": "2026-02-22T10:00:00.000Z",
    });
    Operation::new::<AnswerLinks>("waits", "createAnswerLinks", "Make links that answer a wait")
        .answers(StatusCode::OK, "The links, shown this once.")
        .more(
            "One for each option that may be chosen by a link: `allow_once` and `reject_once` of a permission, every choice of a \
             question. They take the place of those that the same caller had made before. Needs `base_url` in `[notify]`.",
        )
        .of_wait()
        .body_if_any::<Nothing>(Vec::new())
        .example(example)
        .appends()
        .refuses([Code::LinksUnavailable, Code::WaitClosed, Code::SessionUnknown, Code::InvalidAgent])
}

pub(crate) fn view_token() -> Operation {
    let example = json!({
        "wait_id": "wait_01khz0p6r8vk6mqj3b8y2c9d4e", "title": "fix the failing test", "state": "open", "reason": null,
        "expires_at": "2026-02-22T10:00:00.000Z",
        "asked": {"kind": "permission", "question": "Run the tests", "detail": "$ make test", "cut": false},
        "option": {"option_id": "allow", "label": "Allow"},
    });
    Operation::new::<TokenView>("waits", "viewToken", "Show what a resume token is for")
        .answers(StatusCode::OK, "What is asked, and how the token stands. Nothing is used up.")
        .more("For whoever has the token: no access token is needed, and the body is 64 KiB at most without one.")
        .of_wait()
        .body::<ShownToken>(vec![("token", json!({"token": "rt_01khz0p6r8vk6mqj3b8y2c9d4e.SECRET"}))])
        .example(example)
        .refuses([Code::TooManyFailures, Code::SessionUnknown, Code::Storage])
}

pub(crate) fn get_answer_page() -> Operation {
    Operation::new::<String>("waits", "getAnswerPage", "Get the page behind answer links")
        .answers(StatusCode::OK, "The same page for everybody: it does nothing before a person confirms.")
        .ignores_queries()
        .content_type("text/html")
}
