//! What a run did to the files of its directory.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{CheckpointHow, TouchedFile};
use rekindle_domain::id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run did to the files of its directory: its two checkpoints compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunDiff {
    /// The run.
    pub run_id: RunId,
    /// The tree at its start.
    pub from: BlobId,
    /// The tree at its end.
    pub to: BlobId,
    /// `live`, or `late`: the end was captured by whoever came later, so that what changed need not be the agent's work.
    pub how: CheckpointHow,
    /// The rules by which files count are not the same at both: a file may be here only because of that.
    pub rules_differ: bool,
    /// How many files are not the same.
    pub total: u64,
    /// Lines that came, in the files whose lines were counted.
    pub lines_added: u64,
    /// Lines that went, likewise.
    pub lines_removed: u64,
    /// The files; the first of them if there are very many.
    pub files: Vec<FileDiff>,
}

/// What happened to a file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// Which file, what, and how many lines.
    #[serde(flatten)]
    pub file: TouchedFile,
    /// Its unified diff, as `git apply` takes it. Not with `stat`, and not where there is too much of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}
