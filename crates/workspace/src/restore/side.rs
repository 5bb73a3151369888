//! One side of a restore: a tree, and what its capture left out. What a capture did not look at is nobody's to remove.

use std::collections::BTreeSet;
use std::io;

use rekindle_domain::blob_id::BlobId;

use super::paths::with_ancestors;
use crate::objects::ObjectSource;
use crate::path_name::PathName;
use crate::skipped::Skipped;

/// Largest list of skipped paths that is read: a million of usual length.
const MAX_LIST_BYTES: u64 = 128 << 20;

/// A captured state of a directory: the present one, or the one that is wanted.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The tree.
    pub tree: BlobId,
    /// The rules of the capture: whether they ignore a path (the second argument: a directory), or a directory above it.
    ///
    /// They are asked about paths of the present tree. Of that one itself nothing is ignored, so its own side may say so;
    /// [`TreeRules`](super::TreeRules) are those of another tree.
    pub ignores: &'a dyn Fn(&[u8], bool) -> bool,
    /// Every path that the capture skipped; all of them, not only the first ones that a record tells.
    pub skipped: &'a SkippedPaths,
    /// Where the HEAD of git was, as the caller likes to write it; none if that is not known.
    pub git_head: Option<&'a str>,
}

/// Paths that a capture skipped, each with everything below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedPaths(BTreeSet<Vec<u8>>);

impl SkippedPaths {
    /// Returns every path that a capture skipped, those beyond the first from their object.
    pub fn of(skipped: &Skipped, source: &dyn ObjectSource) -> io::Result<SkippedPaths> {
        let Some(all) = &skipped.all else {
            return Ok(skipped.first.iter().map(|skip| skip.path.clone()).collect());
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a line is no skipped path");
        let lines = source.get(all, MAX_LIST_BYTES)?;
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let path: PathName = serde_json::from_slice(line)?;
                path.bytes().ok_or_else(invalid)
            })
            .collect()
    }

    /// Returns true if the path was skipped, or a directory above it.
    pub fn covers(&self, path: &[u8]) -> bool {
        !self.0.is_empty() && with_ancestors(path).any(|path| self.0.contains(path))
    }
}

impl FromIterator<Vec<u8>> for SkippedPaths {
    fn from_iter<T: IntoIterator<Item = Vec<u8>>>(paths: T) -> SkippedPaths {
        SkippedPaths(paths.into_iter().collect())
    }
}
