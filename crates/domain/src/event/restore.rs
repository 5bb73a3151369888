//! Events of files that are put back: asked for in a session that goes on, and what came of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::checkpoint::ChangedFile;
use crate::blob_id::BlobId;
use crate::id::RunId;

/// A session's files are to be what they were before a run: nothing begins before that is done, or was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFilesRestoring<'a> {
    /// The tree that its directory is made.
    pub tree: BlobId,
    /// The run before which the files were like that.
    pub run_id: RunId,
    /// Who asked for it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A session's files were restored, or could not be: what waited for that goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFilesRestored<'a> {
    /// The tree that was wanted.
    pub tree: BlobId,
    /// The tree that was there before: restoring it is the way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<BlobId>,
    /// How many files were changed, over all attempts.
    #[serde(default)]
    pub changed: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ChangedFile>,
    /// How many paths are not as the tree has them: each was left alone for a reason.
    #[serde(default)]
    pub left: u64,
    /// Why nothing was restored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}
