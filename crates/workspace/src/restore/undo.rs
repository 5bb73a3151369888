//! The way back: the tree of before, with what is about to be overwritten or removed put into it where it is not in there.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;

use super::paths::split;
use super::report::RestoreError;
use crate::objects::{ObjectSink, ObjectSource};
use crate::tree::{Entry, OwnedNode, Tree, TreeBuilder, TreeError, load};

/// What is put into a tree, by path.
pub(super) type Overlay = BTreeMap<Vec<u8>, OwnedNode>;

/// One directory of an overlay: what is put into it, by name.
#[derive(Default)]
struct Directory {
    /// What is put here as it is.
    nodes: BTreeMap<Vec<u8>, OwnedNode>,
    /// Directories that something is put into.
    below: BTreeMap<Vec<u8>, Directory>,
}

/// Returns the name of a tree with an overlay put into it. Tree objects that come of it go to the sink.
pub(super) fn lay_over(
    source: &dyn ObjectSource,
    sink: &dyn ObjectSink,
    base: BlobId,
    overlay: &Overlay,
) -> Result<BlobId, RestoreError> {
    if overlay.is_empty() {
        return Ok(base);
    }
    let mut root = Directory::default();
    for (path, node) in overlay {
        let (parents, name) = split(path);
        let mut directory = &mut root;
        for parent in parents.split(|byte| *byte == b'/').filter(|parent| !parent.is_empty()) {
            directory = directory.below.entry(parent.to_vec()).or_default();
        }
        directory.nodes.insert(name.to_vec(), node.clone());
    }
    merge(source, sink, Some(base), &root)
}

fn merge(
    source: &dyn ObjectSource,
    sink: &dyn ObjectSink,
    base: Option<BlobId>,
    overlay: &Directory,
) -> Result<BlobId, RestoreError> {
    let base = base.map(|id| load(source, &id)).transpose()?;
    let mut entries: BTreeMap<Vec<u8>, OwnedNode> = BTreeMap::new();
    for Entry { name, node } in base.iter().flat_map(Tree::entries) {
        entries.insert(name.to_vec(), node.into());
    }
    for (name, node) in &overlay.nodes {
        entries.insert(name.clone(), node.clone());
    }
    for (name, directory) in &overlay.below {
        let below = match entries.get(name) {
            Some(OwnedNode::Directory { tree }) => Some(*tree),
            _ => None,
        };
        let tree = merge(source, sink, below, directory)?;
        entries.insert(name.clone(), OwnedNode::Directory { tree });
    }
    let tree = build(&entries).map_err(std::io::Error::other);
    tree.and_then(|tree| sink.put(tree.bytes()))
        .map_err(|source| RestoreError::Undo { path: Vec::new(), source })
}

fn build(entries: &BTreeMap<Vec<u8>, OwnedNode>) -> Result<Tree, TreeError> {
    let mut builder = TreeBuilder::new();
    for (name, node) in entries {
        builder.push(&Entry { name, node: node.as_node() })?;
    }
    Ok(builder.finish())
}
