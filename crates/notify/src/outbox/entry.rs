//! The entries of an outbox, as their lines have them. No secret is ever in one: links are made when a notice is delivered.

use std::collections::BTreeMap;

use rekindle_domain::id::StreamId;
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::cursor::{Cursor, read_stream, write_stream};
use super::pending::Held;
use crate::notice::{Message, Notice, NoticeKind};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// Everything written before this was read in streams that have no cursor.
    AsOf {
        /// The time.
        at: Timestamp,
        /// The number of the next notice.
        #[serde(default)]
        next: u64,
    },
    /// What was found in streams, and how far they were read with it.
    Step {
        /// The cursors.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cursors: Vec<Cursor>,
        /// The notices.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<Noticed>,
    },
    /// A stream is gone, or so quiet that its end is known without a cursor.
    Forgotten {
        /// The stream.
        #[serde(serialize_with = "write_stream", deserialize_with = "read_stream")]
        stream: StreamId,
    },
    /// It is decided who is told of a notice.
    Settled {
        /// The notice.
        n: u64,
        /// When.
        at: Timestamp,
        /// Who.
        #[serde(default)]
        to: Recipients,
        /// Others may be told later.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// What waits for a sink is told as one summary, not before a time.
    Held {
        /// The sink.
        sink: String,
        /// The time.
        until: Timestamp,
    },
    /// A delivery failed and is tried again.
    Attempt {
        /// The sink.
        sink: String,
        /// The notice; none for a summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        n: Option<u64>,
        /// When it failed.
        at: Timestamp,
        /// How often it has failed.
        failures: u32,
        /// When it is tried again.
        next: Timestamp,
        /// Why it failed.
        why: String,
    },
    /// The summary that waits for a sink, in a file that was written anew.
    Summary {
        /// The sink.
        sink: String,
        /// The summary.
        held: Held,
    },
    /// A delivery is over.
    Told(Told),
}

/// A notice that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noticed {
    /// Its number in this outbox.
    pub n: u64,
    /// When it was put here.
    pub at: Timestamp,
    /// The notice.
    pub notice: Notice,
    /// When it is decided who is told; none if that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Who was told before, of one that is still to be decided about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// Who is told.
    #[serde(default, skip_serializing_if = "Recipients::is_empty")]
    pub to: Recipients,
}

/// The sinks that are told of a notice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipients {
    /// Those that are told as soon as possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<String>,
    /// Those that are told with others as one summary, and not before when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub later: BTreeMap<String, Timestamp>,
}

impl Recipients {
    /// Tells whether nobody is told.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }

    /// Returns their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.now.iter().chain(self.later.keys()).map(String::as_str)
    }
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The sink has it.
    Delivered,
    /// The sink does not take it.
    Refused,
    /// It failed for so long that nobody wants it any more.
    GivenUp,
    /// It was not so any more.
    Outdated,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 4] = [Outcome::Delivered, Outcome::Refused, Outcome::GivenUp, Outcome::Outdated];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Delivered => "delivered",
            Outcome::Refused => "refused",
            Outcome::GivenUp => "given_up",
            Outcome::Outdated => "outdated",
        }
    }
}

/// A delivery that is over, with everything that is said of it to people who ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The sink.
    pub sink: String,
    /// When.
    pub at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// The notice; none of a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Its event.
    pub event_id: String,
    /// What it said had happened; none of a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<NoticeKind>,
    /// What the session or the task is called, or what was summed up.
    pub title: String,
    /// What a summary counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<NoticeKind, u64>,
    /// Attempts that failed before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Why it was not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Told {
    /// Says how the delivery of a message ended.
    pub fn new(sink: &str, n: Option<u64>, message: &Message, at: Timestamp, outcome: Outcome) -> Told {
        let (kind, title, counts) = match message {
            Message::Notice(notice) => (Some(notice.kind), notice.title.clone(), BTreeMap::new()),
            Message::Summary(summary) => {
                let counts = summary.counts.iter().map(|(kind, count)| format!("{count} {}", kind.name()));
                (None, counts.collect::<Vec<_>>().join(", "), summary.counts.clone())
            }
        };
        let event_id = message.event_id().to_owned();
        Told { sink: sink.to_owned(), at, outcome, n, event_id, kind, title, counts, failures: 0, why: None }
    }
}
