//! Trust in project files: a `rekindle.toml` comes with a repository and runs commands with its caller's variables, so that one is used
//! only after a person has said so of these very bytes in this very directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blob_id::BlobId;
use crate::time::Timestamp;

/// The version of the list's format that this code writes.
pub const TRUST_VERSION: u32 = 1;

/// Files that are trusted in one directory at most: whoever goes back to an earlier one of a branch is not asked again.
pub const MAX_OF_ROOT: usize = 32;

/// Files that are trusted in all directories at most: the one that was trusted first goes when there are more.
pub const MAX_TRUSTED: usize = 4096;

/// The list of what is trusted, the latest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustList {
    /// The format's version.
    pub version: u32,
    /// What is trusted.
    pub trusted: Vec<TrustedConfig>,
}

impl Default for TrustList {
    fn default() -> TrustList {
        TrustList { version: TRUST_VERSION, trusted: Vec::new() }
    }
}

/// A project file that is trusted in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedConfig {
    /// The directory, without links on the way to it.
    pub root: String,
    /// BLAKE3 of the file.
    pub hash: BlobId,
    /// When that was said.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
}

impl TrustList {
    /// Tells whether a file is trusted in a directory.
    pub fn is_trusted(&self, root: &str, hash: BlobId) -> bool {
        self.trusted.iter().any(|entry| entry.root == root && entry.hash == hash)
    }

    /// Tells whether another file was trusted in a directory before: then it has changed, and is not a stranger's.
    pub fn knows(&self, root: &str) -> bool {
        self.trusted.iter().any(|entry| entry.root == root)
    }

    /// Adds a file that is trusted from now on; the oldest go where there are too many. Says whether that changed anything.
    pub fn trust(&mut self, new: TrustedConfig) -> bool {
        if self.is_trusted(&new.root, new.hash) {
            return false;
        }
        let root = new.root.clone();
        self.trusted.push(new);
        let mut too_many =
            self.trusted.iter().filter(|entry| entry.root == root).count().saturating_sub(MAX_OF_ROOT);
        self.trusted.retain(|entry| {
            let goes = too_many > 0 && entry.root == root;
            too_many -= usize::from(goes);
            !goes
        });
        let overflow = self.trusted.len().saturating_sub(MAX_TRUSTED);
        self.trusted.drain(..overflow);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(root: &str, n: u32) -> TrustedConfig {
        let (root, hash) = (root.to_owned(), BlobId::of(&n.to_be_bytes()));
        TrustedConfig { root, hash, at: Timestamp::from_millis(n.into()), by: "user:ada".into() }
    }

    #[test]
    fn trust_is_in_these_bytes_in_this_directory() {
        let mut list = TrustList::default();
        assert!(list.trust(entry("/a", 1)));
        assert!(!list.trust(TrustedConfig { by: "user:eve".into(), ..entry("/a", 1) }));
        assert!(list.is_trusted("/a", entry("/a", 1).hash));
        assert!(!list.is_trusted("/b", entry("/a", 1).hash) && !list.is_trusted("/a", entry("/a", 2).hash));
        assert!(!list.is_trusted("/a/", entry("/a", 1).hash));
        assert_eq!((list.knows("/a"), list.knows("/b")), (true, false));
        assert_eq!(list.trusted.len(), 1);
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let mut list = TrustList::default();
        list.trust(entry("/b", 0));
        let most = u32::try_from(MAX_OF_ROOT).expect("a small number");
        (0..most + 2).for_each(|n| assert!(list.trust(entry("/a", n))));
        let of_a: Vec<_> = list.trusted.iter().filter(|one| one.root == "/a").collect();
        assert_eq!((of_a.len(), of_a[0].hash), (MAX_OF_ROOT, entry("/a", 2).hash));
        assert!(list.knows("/b"), "another directory is not concerned");
        let all = u32::try_from(MAX_TRUSTED).expect("a number");
        (0..all).for_each(|n| assert!(list.trust(entry(&format!("/many/{n}"), n))));
        assert_eq!((list.trusted.len(), list.knows("/a"), list.knows("/many/0")), (MAX_TRUSTED, false, true));
    }
}
