//! Events of a run's checkpoints: what its directory contained before its prompt was given to an agent, and after its end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::is_false;
use crate::blob_id::BlobId;
use crate::id::RunId;
use crate::path_name::PathName;
use crate::string_enum::string_enums;

string_enums! {
    /// Which of the two checkpoints of a run.
    #[derive(JsonSchema)]
    pub enum CheckpointAt {
        /// Before its prompt was given to an agent.
        Start = "start",
        /// After its end.
        End = "end",
    }

    /// Whether somebody was there when it was time for a checkpoint.
    #[derive(JsonSchema)]
    pub enum CheckpointHow {
        /// It was taken then.
        Live = "live",
        /// It was taken later, by whoever came next: what changed in between need not be the agent's work.
        Late = "late",
        /// A way a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }

    /// Why a checkpoint was not taken.
    #[derive(JsonSchema)]
    pub enum NotTakenReason {
        /// It took too long, and the prompt did not wait any longer.
        TimedOut = "timed_out",
        /// There is more in the directory than is captured unasked.
        TooLarge = "too_large",
        /// The directory is not there, or may not be read.
        Unreadable = "unreadable",
        /// There is no room for it.
        NoRoom = "no_room",
        /// A restore of the directory has not come to its end.
        Restoring = "restoring",
        /// Anything else went wrong.
        Failed = "failed",
        /// A reason a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }

    /// What happened to a file.
    #[derive(JsonSchema)]
    pub enum FileChange {
        /// It was not there before.
        Added = "added",
        /// It has another content or mode, or is something else than a file now.
        Modified = "modified",
        /// It is not there any more.
        Deleted = "deleted",
        /// A change that a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// A checkpoint of a run's directory: what was in it, or why that is not known. It has a tree, or a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCheckpoint {
    /// The run.
    pub run_id: RunId,
    /// Before its prompt, or after its end.
    pub at: CheckpointAt,
    /// Whether it was taken then, or by whoever came later.
    pub how: CheckpointHow,
    /// The directory, as the session names it.
    pub root: String,
    /// The tree of what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<BlobId>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_taken: Option<Box<NotTaken>>,
    /// Where the HEAD of git was, if the directory is in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Box<GitState>>,
    /// The hash of the rules by which paths counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<BlobId>,
    /// What was left out although the rules include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Box<SkippedPaths>>,
    /// At the end: which files are not what they were at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_touched: Option<Box<FilesTouched>>,
    /// Which directory has that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryIdentity>,
    /// At the start of a run whose agent is launched for it: which files are not what they were at the end of the run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Box<ChangedFiles>>,
}

/// A directory, by what tells it from another of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryIdentity {
    /// The number of its file system, as the system tells it.
    pub file_system: u64,
    /// Its number there.
    pub inode: u64,
}

/// Why a checkpoint was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTaken {
    /// In a word.
    pub reason: NotTakenReason,
    /// For people.
    pub detail: String,
}

/// Where the HEAD of a git repository was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitState {
    /// What it refers to, unless it is detached.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl GitState {
    /// Returns where it was in a few words: the branch and the commit in short.
    pub fn label(&self) -> String {
        let branch = self.reference.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
        let commit = self.commit.as_deref().map(|commit| commit.get(..12).unwrap_or(commit));
        match (branch, commit) {
            (Some(branch), Some(commit)) => format!("{branch} at {commit}"),
            (Some(branch), None) => format!("{branch} without a commit"),
            (None, Some(commit)) => format!("detached at {commit}"),
            (None, None) => "nowhere".into(),
        }
    }
}

/// Paths that a capture left out although the rules include them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPaths {
    /// How many, by reason.
    pub totals: BTreeMap<String, u64>,
    /// The first of them.
    pub first: Vec<SkippedPath>,
    /// The object with all of them, one JSON object a line, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<BlobId>,
}

/// A path that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPath {
    /// The path from the root.
    #[serde(flatten)]
    pub path: PathName,
    /// Why.
    pub reason: String,
}

/// Files that are not what they were when the run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesTouched {
    /// How many.
    pub total: u64,
    /// Lines that came, in the files whose lines were counted.
    pub lines_added: u64,
    /// Lines that went, likewise.
    pub lines_removed: u64,
    /// Files whose lines were not counted: binary ones, large ones, and those that would have taken too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The rules of the two checkpoints differ: a file may be here only because it counted in one of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rules_differ: bool,
    /// The first of them.
    pub first: Vec<TouchedFile>,
    /// The object with all of them, one JSON object a line, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<BlobId>,
}

/// A file that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TouchedFile {
    /// The path from the root.
    #[serde(flatten)]
    pub path: PathName,
    /// What happened to it.
    pub change: FileChange,
    /// Lines that came; null if they were not counted.
    pub lines_added: Option<u64>,
    /// Lines that went, likewise.
    pub lines_removed: Option<u64>,
}

/// Files that are not what they were at an earlier checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFiles {
    /// How many.
    pub total: u64,
    /// The rules of the two checkpoints differ: a file may be here only because it counted in one of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rules_differ: bool,
    /// The first of them.
    pub first: Vec<ChangedFile>,
}

/// A file that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// The path from the root.
    #[serde(flatten)]
    pub path: PathName,
    /// What happened to it.
    pub change: FileChange,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
