//! The record of a capture that somebody asked for: facts about that capture, beside the manifest, which has facts about the contents.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_workspace::path_name::PathName;
use rekindle_workspace::{Captured, Skip, SkipReason, Skipped};
use serde::{Deserialize, Serialize};

/// The version that is written.
const VERSION: u32 = 1;

/// Facts about one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CaptureRecord {
    version: u32,
    /// The tree.
    tree: BlobId,
    /// The directory.
    #[serde(flatten)]
    root: PathName,
    /// The HEAD of git: its commit, else what it refers to.
    pub(super) git_head: Option<String>,
    /// The hash of the rules.
    rules: BlobId,
    /// What was left out.
    skipped: SkippedRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SkippedRecord {
    totals: BTreeMap<SkipReason, u64>,
    first: Vec<SkipRecord>,
    all: Option<BlobId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SkipRecord {
    #[serde(flatten)]
    path: PathName,
    reason: SkipReason,
}

impl CaptureRecord {
    /// Returns the record of a capture of a directory, under the name of a tree.
    pub(super) fn new(tree: BlobId, root: &[u8], captured: &Captured) -> CaptureRecord {
        let told = |skip: &Skip| SkipRecord { path: skip.path.as_slice().into(), reason: skip.reason };
        CaptureRecord {
            version: VERSION,
            tree,
            root: root.into(),
            git_head: git_head(captured),
            rules: captured.rules,
            skipped: SkippedRecord {
                totals: captured.skipped.totals.clone(),
                first: captured.skipped.first.iter().map(told).collect(),
                all: captured.skipped.all,
            },
        }
    }

    /// Returns what was skipped.
    pub(super) fn skipped(&self) -> Skipped {
        let told = |skip: &SkipRecord| Some(Skip { path: skip.path.bytes()?, reason: skip.reason });
        Skipped {
            totals: self.skipped.totals.clone(),
            first: self.skipped.first.iter().filter_map(told).collect(),
            all: self.skipped.all,
        }
    }
}

/// Returns where the HEAD of git was.
pub(super) fn git_head(captured: &Captured) -> Option<String> {
    let git = captured.git.as_ref()?;
    git.commit.clone().or_else(|| git.reference.clone())
}
