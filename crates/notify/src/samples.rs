//! Notices for tests.

use rekindle_domain::time::Timestamp;

use crate::notice::{AnswerLink, Message, Notice, NoticeKind, Question, Summary};

/// Returns a notice that has everything a notice may have.
pub(crate) fn waiting() -> Notice {
    Notice {
        event_id: "sess_01kj0000000000000000000000.12".to_owned(),
        kind: NoticeKind::Waiting,
        at: "2026-02-21T10:00:00.000Z".parse().expect("a time"),
        session_id: Some("sess_01kj0000000000000000000000".parse().expect("an id")),
        run_id: Some("run_01kj0000000000000000000000".parse().expect("an id")),
        task_id: Some("task_01kj0000000000000000000000".parse().expect("an id")),
        title: "Fix the flaky test".to_owned(),
        agent: Some("claude".to_owned()),
        directory: Some("/repo/app".to_owned()),
        reason: Some("a permission is asked for".to_owned()),
        question: Some(Question {
            wait_id: "wait_01kj0000000000000000000000".parse().expect("an id"),
            text: "May I run `cargo test`?".to_owned(),
        }),
        last_words: Some("I have found it.".to_owned()),
    }
}

/// Returns the same as a message.
pub(crate) fn message() -> Message {
    Message::Notice(waiting())
}

/// Returns a summary of three notices.
pub(crate) fn summary() -> Message {
    let mut summary = Summary::of(&waiting());
    let later = Timestamp::from_millis(waiting().at.as_millis() + 60_000);
    for kind in [NoticeKind::Failed, NoticeKind::Failed] {
        summary.add(&Notice { kind, at: later, event_id: "sess_2.3".to_owned(), ..waiting() });
    }
    Message::Summary(summary)
}

/// Returns two links.
pub(crate) fn links() -> Vec<AnswerLink> {
    ["Allow once", "Reject"]
        .map(|label| AnswerLink {
            label: label.to_owned(),
            url: format!("https://box.example/answer#wait_1.{}secret", label.len()),
        })
        .to_vec()
}
