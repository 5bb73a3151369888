//! A notice: one thing that happened, for people who were not looking. Made from records, kept until it is delivered, and the same
//! whoever is told of it.

use std::collections::BTreeMap;
use std::fmt;

use rekindle_domain::id::{RunId, SessionId, TaskId, WaitId};
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// An agent waits for a person.
    Waiting,
    /// It works, and this is how far it has come.
    Progress,
    /// A run or a task has ended well.
    Completed,
    /// It has ended otherwise.
    Failed,
    /// It was interrupted.
    Interrupted,
    /// It goes on behind an interruption.
    Resumed,
    /// It is at work and has said nothing for long.
    Stalled,
    /// Much of a budget is used, or all of it.
    Budget,
    /// No task waits or runs any more.
    QueueEmpty,
}

impl NoticeKind {
    /// Returns its name in bodies and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            NoticeKind::Waiting => "waiting",
            NoticeKind::Progress => "progress",
            NoticeKind::Completed => "completed",
            NoticeKind::Failed => "failed",
            NoticeKind::Interrupted => "interrupted",
            NoticeKind::Resumed => "resumed",
            NoticeKind::Stalled => "stalled",
            NoticeKind::Budget => "budget",
            NoticeKind::QueueEmpty => "queue_empty",
        }
    }
}

/// One thing that happened. It has no secret in it: links are made when it is delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The record behind it, `<stream>.<seq>`: the same notice has the same, however often it is delivered.
    pub event_id: String,
    /// What happened.
    pub kind: NoticeKind,
    /// When.
    pub at: Timestamp,
    /// The session it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What the session or the task is called.
    pub title: String,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Why, in a few words: the reason of a failure, an interruption, a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is asked, if somebody waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The agent's last words, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
}

/// What an agent asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The wait that an answer ends.
    pub wait_id: WaitId,
    /// The question, shortened.
    pub text: String,
}

/// What is delivered at once.
#[expect(
    clippy::large_enum_variant,
    reason = "hardly any summary is among them, and few are in memory at once"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// One notice.
    Notice(Notice),
    /// Many, of which each alone would be too late or too much.
    Summary(Summary),
}

impl Message {
    /// Returns a message that says that it is a test.
    pub fn test(now: Timestamp) -> Message {
        Message::Notice(Notice {
            event_id: format!("test.{}", now.as_millis()),
            kind: NoticeKind::Completed,
            at: now,
            session_id: None,
            run_id: None,
            task_id: None,
            title: "a test: notifications of rekindle arrive here".into(),
            agent: None,
            directory: None,
            reason: None,
            question: None,
            last_words: None,
        })
    }

    /// Returns the event by which a receiver knows it again.
    pub fn event_id(&self) -> &str {
        match self {
            Message::Notice(notice) => &notice.event_id,
            Message::Summary(summary) => &summary.event_id,
        }
    }
}

/// Notices that are told as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The event of the last of them.
    pub event_id: String,
    /// How many of each kind.
    pub counts: BTreeMap<NoticeKind, u64>,
    /// When the first happened.
    pub since: Timestamp,
    /// When the last happened.
    pub until: Timestamp,
}

impl Summary {
    /// Begins one with a notice.
    pub fn of(notice: &Notice) -> Summary {
        let mut summary = Summary {
            event_id: notice.event_id.clone(),
            counts: BTreeMap::new(),
            since: notice.at,
            until: notice.at,
        };
        summary.add(notice);
        summary
    }

    /// Adds the next notice.
    pub fn add(&mut self, notice: &Notice) {
        *self.counts.entry(notice.kind).or_default() += 1;
        self.event_id.clone_from(&notice.event_id);
        self.since = self.since.min(notice.at);
        self.until = self.until.max(notice.at);
    }
}

/// A link that answers a wait with one option. It holds a secret, so nothing shows it but the message it is made for.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerLink {
    /// What choosing it means, in the agent's words.
    pub label: String,
    /// The link, with the secret in its fragment.
    pub url: String,
}

impl fmt::Debug for AnswerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerLink").field("label", &self.label).finish_non_exhaustive()
    }
}
