//! Views of kept snapshots.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot;
use rekindle_domain::session::UsageShown;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FilesOutcome, ForkVerdict, RunView, SessionView};
use crate::string_enum::string_enums;

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
    }
}

impl From<kept_snapshot::SnapshotReason> for SnapshotReason {
    fn from(reason: kept_snapshot::SnapshotReason) -> SnapshotReason {
        match reason {
            kept_snapshot::SnapshotReason::Interval => SnapshotReason::Interval,
            kept_snapshot::SnapshotReason::RunEnd => SnapshotReason::RunEnd,
            kept_snapshot::SnapshotReason::Exit => SnapshotReason::Exit,
            kept_snapshot::SnapshotReason::Request => SnapshotReason::Request,
            kept_snapshot::SnapshotReason::BeforeRestore => SnapshotReason::BeforeRestore,
            kept_snapshot::SnapshotReason::Unknown => SnapshotReason::Unknown,
        }
    }
}

/// A kept snapshot of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub struct SnapshotView {
    /// Its name within the session: the record it was taken at, and which one of those taken there it is.
    #[schemars(extend("examples" = ["148-1"]))]
    pub name: String,
    /// The last record it has taken in.
    pub seq: u64,
    /// Why it was taken; null if it cannot be read.
    pub reason: Option<SnapshotReason>,
    /// When.
    pub created_at: Timestamp,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// The files of the working directory at that time, if they were captured.
    pub tree: Option<BlobId>,
    /// Why it cannot be used; null if it can.
    pub problem: Option<SnapshotProblem>,
}

/// Why a snapshot cannot be used.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotProblem {
    /// `snapshot_corrupted`, `snapshot_version`, or `storage`.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
}

/// A session that goes on from a kept snapshot of another.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RestoredSession {
    /// The new session.
    pub session: SessionView,
    /// The snapshot.
    #[schemars(extend("examples" = ["148-1"]))]
    pub snapshot: String,
    /// The session whose place it takes, which is closed; null if that goes on beside it.
    pub replaces: Option<SessionId>,
    /// What becomes of the files.
    pub files: FilesOutcome,
    /// What its agent knows of the history before it.
    pub verdict: ForkVerdict,
    /// The same for people.
    pub notice: String,
    /// What is not as it was.
    pub warnings: Vec<RestoreWarning>,
}

/// Something that is not as it was after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreWarning {
    /// `agent_cannot_load`: the agent does not take up its own session there. Words may be added.
    #[schemars(extend("examples" = ["agent_cannot_load"]))]
    pub code: String,
    /// What that means, for people.
    pub message: String,
}

/// The kept snapshots of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    /// The snapshots; the one that was taken last comes first.
    pub snapshots: Vec<SnapshotView>,
}

/// A kept snapshot and what the session was then.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDetail {
    /// Its name within the session.
    pub name: String,
    /// The session.
    pub session_id: SessionId,
    /// The last record it has taken in.
    pub seq: u64,
    /// That record's hash.
    pub h: Option<String>,
    /// Why it was taken.
    pub reason: SnapshotReason,
    /// When.
    pub created_at: Timestamp,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// The files of the working directory at that time, if they were captured.
    pub tree: Option<BlobId>,
    /// The session's title.
    pub title: String,
    /// Where its agent worked.
    pub working_dir: String,
    /// Its agent's name, or its command's.
    pub agent: String,
    /// The model that its agent was asked to use.
    pub model: Option<String>,
    /// The mode that its agent was asked to work in.
    pub mode: Option<String>,
    /// The agent's own session.
    pub cursor: Option<String>,
    /// Its latest run.
    pub run: Option<RunView>,
    /// Open waits, and those of a dead agent.
    pub waits: usize,
    /// Prompts that waited for their turn.
    pub queued: usize,
    /// Tokens and money.
    pub usage: UsageShown,
    /// The whole state, as the file has it.
    pub state: Map<String, Value>,
}
