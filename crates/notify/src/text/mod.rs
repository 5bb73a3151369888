//! What a message says to people, before any service has its own way with it: a title and a body, of text that is only text.

mod clean;
mod fit;

use serde::Deserialize;

use crate::notice::{Message, Notice, NoticeKind, Summary};

pub(crate) use clean::{block, line};
pub(crate) use fit::{defused, fit};

/// Longest texts, in characters: what fits on a screen of a phone, with room for what people scroll to.
const TITLE: usize = 120;
const REASON: usize = 500;
const QUESTION: usize = 2_000;
const LAST_WORDS: usize = 2_000;

/// How much of a notice leaves the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Include {
    /// What happened, and the title of what it happened to.
    #[default]
    Title,
    /// Also why, and what is asked.
    Question,
    /// Also which agent, where, and its last words.
    Full,
}

/// A message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    /// One line.
    pub(crate) title: String,
    /// None or more lines.
    pub(crate) body: String,
}

/// A notice as far as it may leave the machine, with clean texts.
pub(crate) fn included(notice: &Notice, include: Include) -> Notice {
    let mut notice = notice.clone();
    notice.title = line(&notice.title, TITLE);
    if include < Include::Question {
        notice.reason = None;
        notice.question = None;
    }
    if include < Include::Full {
        notice.agent = None;
        notice.directory = None;
        notice.last_words = None;
    }
    notice.reason = notice.reason.map(|reason| line(&reason, REASON));
    notice.agent = notice.agent.map(|agent| line(&agent, TITLE));
    notice.directory = notice.directory.map(|directory| line(&directory, REASON));
    notice.last_words = notice.last_words.map(|words| block(&words, LAST_WORDS));
    if let Some(question) = &mut notice.question {
        question.text = block(&question.text, QUESTION);
    }
    notice
}

/// Returns a message in words.
pub(crate) fn words(message: &Message, include: Include) -> Words {
    match message {
        Message::Notice(notice) => of_notice(&included(notice, include)),
        Message::Summary(summary) => of_summary(summary),
    }
}

fn of_notice(notice: &Notice) -> Words {
    let name = match notice.title.as_str() {
        "" => "A session",
        title => title,
    };
    let title = match notice.kind {
        NoticeKind::Waiting => format!("{name}: waits for you"),
        NoticeKind::Progress => format!("{name}: at work"),
        NoticeKind::Completed => format!("{name}: done"),
        NoticeKind::Failed => format!("{name}: failed"),
        NoticeKind::Interrupted => format!("{name}: interrupted"),
        NoticeKind::Resumed => format!("{name}: continues"),
        NoticeKind::Stalled => format!("{name}: no sign of life for a long time"),
        NoticeKind::Budget => format!("{name}: budget"),
        NoticeKind::QueueEmpty => "No task is waiting or running any more".to_owned(),
    };
    let place = [&notice.agent, &notice.directory].map(|part| part.as_deref().unwrap_or_default());
    let parts = [
        notice.reason.clone().unwrap_or_default(),
        notice.question.as_ref().map(|question| question.text.clone()).unwrap_or_default(),
        notice.last_words.clone().unwrap_or_default(),
        place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" in "),
    ];
    let body = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    Words { title, body }
}

fn of_summary(summary: &Summary) -> Words {
    let total: u64 = summary.counts.values().sum();
    let plural = if total == 1 { "thing" } else { "things" };
    let counts =
        summary.counts.iter().map(|(kind, count)| format!("{count} {}", kind.name().replace('_', " ")));
    let body = format!(
        "{}\n\nFrom {} to {}.",
        counts.collect::<Vec<_>>().join(", "),
        minutes(&summary.since.to_string()),
        minutes(&summary.until.to_string())
    );
    Words { title: format!("{total} {plural} happened in the meantime"), body }
}

/// Returns `2026-02-21T10:00:00.000Z` as `2026-02-21 10:00 UTC`.
fn minutes(written: &str) -> String {
    format!("{} UTC", written.get(..16).unwrap_or(written).replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn only_what_may_leave_the_machine_does() {
        let told = |include| words(&samples::message(), include);
        let title = "Fix the flaky test: waits for you";
        assert_eq!(told(Include::Title), Words { title: title.to_owned(), body: String::new() });
        let question = told(Include::Question);
        assert_eq!(question.body, "a permission is asked for\n\nMay I run `cargo test`?");
        let full = told(Include::Full);
        assert_eq!(
            full.body,
            "a permission is asked for\n\nMay I run `cargo test`?\n\nI have found it.\n\nclaude in /repo/app"
        );
        assert!([question.title, full.title].iter().all(|told| told == title));
    }

    #[test]
    fn every_kind_has_its_words_and_a_summary_counts() {
        let titles = [
            NoticeKind::Waiting,
            NoticeKind::Progress,
            NoticeKind::Completed,
            NoticeKind::Failed,
            NoticeKind::Interrupted,
            NoticeKind::Resumed,
            NoticeKind::Stalled,
            NoticeKind::Budget,
            NoticeKind::QueueEmpty,
        ]
        .map(|kind| words(&Message::Notice(Notice { kind, ..samples::waiting() }), Include::Title).title);
        let different: std::collections::BTreeSet<_> = titles.iter().collect();
        assert_eq!(different.len(), titles.len());
        let unnamed = Notice { title: "\u{200b}\n".to_owned(), ..samples::waiting() };
        assert_eq!(words(&Message::Notice(unnamed), Include::Title).title, "A session: waits for you");
        let summary = words(&samples::summary(), Include::Title);
        assert_eq!(summary.title, "3 things happened in the meantime");
        assert_eq!(summary.body, "1 waiting, 2 failed\n\nFrom 2026-02-21 10:00 UTC to 2026-02-21 10:01 UTC.");
    }
}
