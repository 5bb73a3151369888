//! The objects of a bundle: contents and trees, each once, in the order in which a directory has them: neighbours are alike, and
//! compress the better for it.

use std::collections::HashMap;
use std::io;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{MAX_BYTES, MAX_MEMBERS, MAX_TREES};
use rekindle_store::blobs::Blobs;
use rekindle_workspace::tree::{Node, WalkError, load};

use crate::workspaces::BlobSource;

/// The objects of a bundle, and how large each is.
pub(super) struct Objects {
    source: BlobSource,
    members: Vec<(BlobId, u64)>,
    /// Those that are among them, and whether each is a tree.
    known: HashMap<BlobId, bool>,
    /// The trees, in the order in which they were added.
    trees: Vec<BlobId>,
    bytes: u64,
    /// How many of these are of trees.
    tree_bytes: u64,
}

impl Objects {
    pub(super) fn new(blobs: Blobs) -> Objects {
        let (members, known, trees) = (Vec::new(), HashMap::new(), Vec::new());
        Objects { source: BlobSource(blobs), members, known, trees, bytes: 0, tree_bytes: 0 }
    }

    /// Tells whether an object is among them, and then whether it is a tree.
    pub(super) fn is_tree(&self, id: &BlobId) -> Option<bool> {
        self.known.get(id).copied()
    }

    /// Adds an object that names no others.
    pub(super) fn add(&mut self, id: BlobId, size: u64) {
        self.add_as(id, size, false);
    }

    fn add_as(&mut self, id: BlobId, size: u64, is_tree: bool) {
        if self.known.insert(id, is_tree).is_none() {
            self.members.push((id, size));
            self.bytes = self.bytes.saturating_add(size);
        }
    }

    /// Adds a tree with everything in it, or nothing of it if something is missing or there is no room in a bundle.
    pub(super) fn add_tree(&mut self, root: BlobId) -> Result<(), WalkError> {
        let (first, first_tree) = (self.members.len(), self.trees.len());
        let before = (self.bytes, self.tree_bytes);
        let added = self.add_all(root);
        if added.is_err() {
            // What was a file's content before is that still.
            self.known.extend(self.trees.drain(first_tree..).map(|id| (id, false)));
            for (id, _) in self.members.drain(first..) {
                self.known.remove(&id);
            }
            (self.bytes, self.tree_bytes) = before;
        }
        added
    }

    fn add_all(&mut self, root: BlobId) -> Result<(), WalkError> {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if self.is_tree(&id) == Some(true) {
                continue;
            }
            let tree = load(&self.source, &id)?;
            self.add_as(id, tree.bytes().len() as u64, true);
            self.trees.push(id);
            self.tree_bytes += tree.bytes().len() as u64;
            let below = open.len();
            for entry in tree.entries() {
                match entry.node {
                    // Also one that is a tree of its own somewhere else: a file may have any bytes.
                    Node::File { size, content, .. } if self.is_tree(&content).is_none() => {
                        self.check_there(&content)?;
                        self.add(content, size);
                    }
                    Node::File { .. } => {}
                    Node::Directory { tree } => open.push(tree),
                    Node::Link { .. } => {}
                }
            }
            // The first of them is on top.
            open[below..].reverse();
            let too_large = self.bytes > MAX_BYTES || self.tree_bytes > MAX_TREES;
            if too_large || self.members.len() > MAX_MEMBERS {
                let full = io::Error::new(io::ErrorKind::FileTooLarge, "there is no room for it in a bundle");
                return Err(WalkError::Read { id: root, source: full });
            }
        }
        Ok(())
    }

    /// Refuses a content that is not here any more: whoever has the tree counts on it.
    fn check_there(&self, content: &BlobId) -> Result<(), WalkError> {
        let there = self.source.0.contains(content).unwrap_or(false);
        let missing = || io::Error::new(io::ErrorKind::NotFound, "a file's content is missing");
        if there { Ok(()) } else { Err(WalkError::Read { id: *content, source: missing() }) }
    }

    /// Returns them in the order in which they are written.
    pub(super) fn into_members(self) -> Vec<(BlobId, u64)> {
        self.members
    }
}
