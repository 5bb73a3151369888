//! Views of a search through the logs of sessions.

use rekindle_domain::id::SessionId;
use rekindle_domain::search::{ExcerptPart, FoundIn};
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page of what a search has found: of the newest session first, and in each the newest record first. A page may have fewer records
/// than were asked for, or none, and still not be the last: one request reads only so much.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SearchPage {
    /// The records.
    pub matches: Vec<SearchMatch>,
    /// Where the search goes on; null if everything was searched.
    pub next: Option<String>,
    /// Sessions whose logs could not be read.
    pub unreadable: usize,
}

/// A record that has all the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchMatch {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    pub title: String,
    /// Where its agent works.
    pub working_dir: String,
    /// The record.
    #[schemars(range(min = 1))]
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What has the words.
    pub found_in: FoundIn,
    /// The text around the first of the words, in one line and in parts.
    pub excerpt: Vec<ExcerptPart>,
}
