//! Views of a session's log.

use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A page of a session's log. Records are passed on as they stand.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogPage {
    /// The records.
    #[schemars(with = "Vec<Record>")]
    pub records: Vec<Box<RawValue>>,
    /// `after` of the next page; null if this is the last.
    #[schemars(range(min = 1))]
    pub next: Option<u64>,
    /// Where the log is damaged, if this page ends there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<LogDamage>,
    /// What the session was forked from cannot be read, if this page would have had some of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_missing: Option<HistoryMissing>,
}

/// A place in a log that cannot be right: nothing is told of what is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Damage")]
pub struct LogDamage {
    /// The byte where it begins.
    pub offset: u64,
    /// What is wrong.
    pub detail: String,
}

/// The history that a fork goes on from cannot be read. Also an event of its own, `history_missing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryMissing {
    /// The first of its own records: nothing is told of those before it.
    pub before: u64,
    /// Why.
    pub detail: String,
}

/// A record: what every one has, and the fields of its kind (docs/on-disk-format.md).
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and passed on as it is")]
struct Record {
    #[schemars(range(min = 1))]
    seq: u64,
    ts: Timestamp,
    #[schemars(extend("examples" = ["run.started"]))]
    kind: String,
    /// The hash of the log up to here.
    #[schemars(default, with = "String", regex(pattern = "^[0-9a-f]{16}$"))]
    h: Option<String>,
}
