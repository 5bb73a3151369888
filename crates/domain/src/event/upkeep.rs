//! Events of keeping house: restored conversations, snapshots, repairs, derived statuses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Raw;
use crate::string_enum::string_enums;

/// An agent's conversation was brought back, and how well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRestored<'a> {
    /// `load`, `resume`, `fork`, `context` or `fresh`.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// `continued`, `shorter`, `reprimed`, `fresh` or `unverified`.
    #[serde(borrow)]
    pub verdict: Cow<'a, str>,
    /// What was compared.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Raw<'a>>,
}

impl SessionRestored<'_> {
    /// The verdicts there are.
    pub const VERDICTS: [&'static str; 5] =
        [SessionRestored::CONTINUED, "shorter", "reprimed", "fresh", "unverified"];

    /// The verdict on an agent that has shown that everything is there.
    pub const CONTINUED: &'static str = "continued";

    /// Returns what was compared; nothing where a record does not say or is of another version.
    pub fn counts(&self) -> RestoredCounts {
        let counts = self.counts.as_ref().and_then(|counts| serde_json::from_str(counts.as_json()).ok());
        counts.unwrap_or_default()
    }
}

/// What an agent replayed of its conversation, beside what the log expects of it; the `counts` of a `session.restored`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RestoredCounts {
    /// Prompts and answers of ended runs that should be there.
    pub expected: u64,
    /// Those of them that are.
    pub found: u64,
    /// Prompts that were replayed.
    pub prompts: u64,
    /// Pieces of answers that were replayed.
    pub answers: u64,
    /// Tool calls that were replayed.
    pub tools: u64,
    /// Whether the request of a run that was cut is among them; none if no run was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_shown: Option<bool>,
}

impl RestoredCounts {
    /// Tells whether nothing at all was replayed.
    pub fn is_empty(&self) -> bool {
        self.prompts == 0 && self.answers == 0 && self.tools == 0
    }
}

string_enums! {
    /// Why a snapshot was taken.
    pub enum SnapshotReason {
        /// Something had happened since the last one, and time had passed.
        Interval = "interval",
        /// A run ended.
        RunEnd = "run_end",
        /// The daemon left, or the session was closed.
        Exit = "exit",
        /// Somebody asked for it.
        Request = "request",
        /// The session was about to be taken back to an earlier one.
        BeforeRestore = "before_restore",
        /// A reason that a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// A snapshot was kept: its file was on disk before this record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SnapshotCreated {
    /// Its size on disk.
    pub size_bytes: u64,
    /// Its name, which begins with the record it was taken at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Why it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SnapshotReason>,
}

/// A snapshot could not be kept. Said once for a reason that lasts, such as a full disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFailed<'a> {
    /// Why not.
    #[serde(borrow)]
    pub error: Cow<'a, str>,
    /// Why it was to be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SnapshotReason>,
}

/// The session continues from a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRestored<'a> {
    /// Which one.
    #[serde(borrow)]
    pub snapshot: Cow<'a, str>,
    /// How old it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// The log was put right after a crash or damage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRepaired<'a> {
    /// `torn_tail`, `half_list`, `healed`, or `prefix_kept`: what follows in a damaged log was set aside with it.
    #[serde(borrow)]
    pub what: Cow<'a, str>,
    /// The byte where it began.
    pub offset: u64,
    /// How many bytes were cut off.
    pub cut_bytes: u64,
    /// How many records the write-ahead log put back.
    pub refilled: u64,
    /// A blob reference to what was cut off, where it was more than the beginning of one line.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Raw<'a>>,
}

/// What the status was found to be; for subscribers, never for the projector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDerived<'a> {
    /// The status.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
}
