//! Pending deliveries: a notice that waits for its sink, or the sum of many.

use std::sync::Arc;

use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::notice::{Notice, Summary};

/// A notice that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Its number in the outbox.
    pub n: u64,
    /// The notice.
    pub notice: Arc<Notice>,
    /// Since when it waits.
    pub since: Timestamp,
    /// How often its delivery has failed.
    pub failures: u32,
    /// When it may be tried.
    pub next: Timestamp,
    /// Why it failed last.
    pub why: String,
}

impl Waiting {
    pub(super) fn new(n: u64, notice: Arc<Notice>, since: Timestamp) -> Waiting {
        Waiting { n, notice, since, failures: 0, next: since, why: String::new() }
    }
}

/// A summary that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The summary.
    pub summary: Summary,
    /// When it may be tried.
    pub next: Timestamp,
    /// Since when it waits.
    pub since: Timestamp,
    /// How often its delivery has failed.
    #[serde(default)]
    pub failures: u32,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Held {
    /// Adds what another summary has that waits behind it.
    pub(super) fn add(&mut self, behind: Held) {
        for (kind, count) in behind.summary.counts {
            *self.summary.counts.entry(kind).or_default() += count;
        }
        self.summary.event_id = behind.summary.event_id;
        self.summary.since = self.summary.since.min(behind.summary.since);
        self.summary.until = self.summary.until.max(behind.summary.until);
        self.since = self.since.min(behind.since);
        self.next = self.next.max(behind.next);
    }
}
