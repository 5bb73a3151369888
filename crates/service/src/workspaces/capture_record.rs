//! The record of a capture that somebody asked for: facts about that capture, beside the manifest, which has facts about the contents.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::SkippedPaths;
use rekindle_domain::path_name::PathName;
use rekindle_workspace::{Captured, Skipped};
use serde::{Deserialize, Serialize};

use super::checkpoint_record::{as_recorded, from_record};

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
    skipped: SkippedPaths,
    /// It is kept for runs of pipelines alone, and goes with them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) for_runs: bool,
}

impl CaptureRecord {
    /// Returns the record of a capture of a directory, under the name of a tree.
    pub(super) fn new(tree: BlobId, root: &[u8], captured: &Captured) -> CaptureRecord {
        CaptureRecord {
            version: VERSION,
            tree,
            root: root.into(),
            git_head: git_head(captured),
            rules: captured.rules,
            skipped: as_recorded(&captured.skipped),
            for_runs: false,
        }
    }

    /// Returns what was skipped.
    pub(super) fn skipped(&self) -> Skipped {
        from_record(&self.skipped)
    }
}

/// Returns where the HEAD of git was.
pub(super) fn git_head(captured: &Captured) -> Option<String> {
    let git = captured.git.as_ref()?;
    git.commit.clone().or_else(|| git.reference.clone())
}
