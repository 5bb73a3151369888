//! What a tree has at a path, for questions about few paths of a large tree. Objects are read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rekindle_domain::blob_id::BlobId;

use super::journal::Journal;
use crate::objects::ObjectSource;
use crate::tree::{OwnedNode, Tree, WalkError, load};

/// A tree that is asked about paths.
pub(super) struct Lookup<'a> {
    source: &'a dyn ObjectSource,
    root: BlobId,
    read: RefCell<HashMap<BlobId, Rc<Tree>>>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(source: &'a dyn ObjectSource, root: BlobId) -> Lookup<'a> {
        Lookup { source, root, read: RefCell::default() }
    }

    /// Returns what the tree has at a path.
    pub(super) fn get(&self, path: &[u8]) -> Result<Option<OwnedNode>, WalkError> {
        let mut node = OwnedNode::Directory { tree: self.root };
        for name in path.split(|byte| *byte == b'/') {
            let OwnedNode::Directory { tree } = node else { return Ok(None) };
            match self.load(tree)?.get(name) {
                Some(entry) => node = entry.node.into(),
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn load(&self, id: BlobId) -> Result<Rc<Tree>, WalkError> {
        if let Some(tree) = self.read.borrow().get(&id) {
            return Ok(Rc::clone(tree));
        }
        let tree = Rc::new(load(self.source, &id)?);
        self.read.borrow_mut().insert(id, Rc::clone(&tree));
        Ok(tree)
    }
}

/// The trees of a restore that was interrupted: what is in none of them is nothing that it may take away.
pub(super) struct Began<'a>(Vec<Lookup<'a>>);

impl<'a> Began<'a> {
    pub(super) fn new(source: &'a dyn ObjectSource, journal: &Journal) -> Began<'a> {
        Began(journal.trees().map(|tree| Lookup::new(source, tree)).collect())
    }

    /// Returns true if one of the trees has something at a path.
    pub(super) fn knows(&self, path: &[u8]) -> Result<bool, WalkError> {
        self.any(path, |found| found.is_some())
    }

    /// Returns true if one of the trees has exactly this at a path, so that the way back needs nothing more.
    pub(super) fn has(&self, path: &[u8], node: &OwnedNode) -> Result<bool, WalkError> {
        self.any(path, |found| found.as_ref() == Some(node))
    }

    fn any(&self, path: &[u8], is_it: impl Fn(Option<OwnedNode>) -> bool) -> Result<bool, WalkError> {
        for tree in &self.0 {
            if is_it(tree.get(path)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
