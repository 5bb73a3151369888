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
