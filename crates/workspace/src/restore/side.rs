//! One side of a restore: a tree, and what its capture left out. What a capture did not look at is nobody's to remove.

use std::collections::BTreeSet;

use rekindle_domain::blob_id::BlobId;

use super::paths::with_ancestors;

/// A captured state of a directory: the present one, or the one that is wanted.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The tree.
    pub tree: BlobId,
    /// The rules of the capture: whether they ignore a path (the second argument: a directory), or a directory above it.
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
