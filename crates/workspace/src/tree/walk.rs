//! A whole tree, entry by entry, in the order of paths, with every object checked against its name.
//! Limits hold whatever the objects say: a few of them, shared, can stand for more entries than there are atoms.

use std::io;

use rekindle_domain::blob_id::BlobId;

use super::{Entry, MAX_DEPTH, MAX_TREE_BYTES, Node, Tree, TreeError};
use crate::objects::ObjectSource;

/// How much of a tree is walked before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most entries, directories included.
    pub entries: u64,
    /// Deepest directory, the root being 0.
    pub depth: usize,
    /// Most bytes of contents, by the sizes that entries claim.
    pub bytes: u64,
}

impl Default for Limits {
    /// Far above any workspace that is worked in, far below what would fill a memory or a disk by surprise.
    fn default() -> Limits {
        Limits { entries: 5_000_000, depth: MAX_DEPTH, bytes: 1 << 40 }
    }
}

/// Why a tree could not be walked to its end.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// A tree object is not there, or could not be read.
    #[error("cannot read tree object {id}")]
    Read {
        /// Which one.
        id: BlobId,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The bytes of an object are not those that its name stands for.
    #[error("tree object {id} is damaged: its bytes do not match its hash")]
    WrongHash {
        /// Which one.
        id: BlobId,
    },
    /// The bytes are what was named, and no tree object.
    #[error("{id} is not a tree object")]
    Invalid {
        /// Which one.
        id: BlobId,
        /// What is wrong with it.
        #[source]
        source: TreeError,
    },
    /// The tree is larger than was allowed.
    #[error("the tree has more than {0}")]
    Limit(LimitReached),
}

/// Which limit a tree goes beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// Too many entries.
    #[error("{0} entries")]
    Entries(u64),
    /// Directories too deep inside each other.
    #[error("{0} levels of directories")]
    Depth(usize),
    /// Contents too large.
    #[error("{0} bytes of contents")]
    Bytes(u64),
}

/// Reads a tree object and checks that it is the one that was named, and valid.
pub fn load(source: &dyn ObjectSource, id: &BlobId) -> Result<Tree, WalkError> {
    let bytes = source.get(id, MAX_TREE_BYTES).map_err(|source| WalkError::Read { id: *id, source })?;
    if BlobId::of(&bytes) != *id {
        return Err(WalkError::WrongHash { id: *id });
    }
    Tree::parse(bytes).map_err(|source| WalkError::Invalid { id: *id, source })
}

/// A walk through a tree. A directory comes before what is in it.
pub struct TreeWalk<'a> {
    source: &'a dyn ObjectSource,
    limits: Limits,
    entries: u64,
    bytes: u64,
    /// Directories that are being walked, from the root down.
    open: Vec<Level>,
    /// Path of the innermost one, with a slash at its end unless it is the root.
    path: Vec<u8>,
    start: Option<BlobId>,
}

struct Level {
    tree: Tree,
    /// Where the next entry begins.
    at: usize,
    /// Length of this directory's path, slash included.
    path: usize,
}

/// An entry with its path from the root of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedEntry {
    /// Names from the root down, with `/` between them.
    pub path: Vec<u8>,
    /// What it is.
    pub node: OwnedNode,
}

/// What an entry is, apart from the tree that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedNode {
    /// A regular file: as [`Node::File`].
    File {
        /// Who may use it, and how.
        mode: super::FileMode,
        /// Its length in bytes.
        size: u64,
        /// The name of its content.
        content: BlobId,
    },
    /// A symbolic link: as [`Node::Link`].
    Link {
        /// Where it points to.
        target: Vec<u8>,
    },
    /// A directory: as [`Node::Directory`].
    Directory {
        /// The name of its tree object.
        tree: BlobId,
    },
}

impl From<Node<'_>> for OwnedNode {
    fn from(node: Node<'_>) -> OwnedNode {
        match node {
            Node::File { mode, size, content } => OwnedNode::File { mode, size, content },
            Node::Link { target } => OwnedNode::Link { target: target.to_vec() },
            Node::Directory { tree } => OwnedNode::Directory { tree },
        }
    }
}

impl OwnedNode {
    /// Returns the same as an entry of a tree has it.
    pub fn as_node(&self) -> Node<'_> {
        match self {
            OwnedNode::File { mode, size, content } => {
                Node::File { mode: *mode, size: *size, content: *content }
            }
            OwnedNode::Link { target } => Node::Link { target },
            OwnedNode::Directory { tree } => Node::Directory { tree: *tree },
        }
    }
}

impl<'a> TreeWalk<'a> {
    /// Returns the walk through the tree of this name. Nothing is read before the first entry is asked for.
    pub fn new(source: &'a dyn ObjectSource, root: BlobId, limits: Limits) -> TreeWalk<'a> {
        TreeWalk {
            source,
            limits,
            entries: 0,
            bytes: 0,
            open: Vec::new(),
            path: Vec::new(),
            start: Some(root),
        }
    }

    fn enter(&mut self, id: BlobId) -> Result<(), WalkError> {
        if self.open.len() > self.limits.depth {
            return Err(WalkError::Limit(LimitReached::Depth(self.limits.depth)));
        }
        let tree = load(self.source, &id)?;
        let at = tree.start();
        self.open.push(Level { tree, at, path: self.path.len() });
        Ok(())
    }

    fn step(&mut self) -> Result<Option<WalkedEntry>, WalkError> {
        if let Some(root) = self.start.take() {
            self.enter(root)?;
        }
        let found = loop {
            let Some(level) = self.open.last_mut() else { return Ok(None) };
            self.path.truncate(level.path);
            match level.tree.entry_at(level.at) {
                Some((Entry { name, node }, next)) => {
                    level.at = next;
                    self.path.extend_from_slice(name);
                    break OwnedNode::from(node);
                }
                None => _ = self.open.pop(),
            }
        };
        let path = self.path.clone();
        self.count(&found)?;
        if let OwnedNode::Directory { tree } = found {
            self.path.push(b'/');
            self.enter(tree)?;
        }
        Ok(Some(WalkedEntry { path, node: found }))
    }

    fn count(&mut self, node: &OwnedNode) -> Result<(), WalkError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(WalkError::Limit(LimitReached::Entries(self.limits.entries)));
        }
        if let OwnedNode::File { size, .. } = node {
            self.bytes = self.bytes.saturating_add(*size);
            if self.bytes > self.limits.bytes {
                return Err(WalkError::Limit(LimitReached::Bytes(self.limits.bytes)));
            }
        }
        Ok(())
    }
}

impl Iterator for TreeWalk<'_> {
    type Item = Result<WalkedEntry, WalkError>;

    /// Returns the next entry. After an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.open.clear();
        }
        step.transpose()
    }
}
