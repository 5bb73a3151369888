//! Reachable objects: a record or a manifest names the root tree of a snapshot alone, that names contents and further trees.

use std::collections::HashSet;
use std::io::{self, Write};

use rekindle_domain::blob_id::BlobId;
use rekindle_workspace::ObjectSource;
use rekindle_workspace::tree::{MAGIC, Node, WalkError, load};

/// Adds everything that trees among some objects name, and what those name. An error is of a tree that is there and cannot be
/// read: it may name anything.
pub(super) fn add_reachable(source: &dyn ObjectSource, named: &mut HashSet<BlobId>) -> Result<(), WalkError> {
    let mut open = Vec::new();
    for id in named.iter() {
        if is_tree(source, id).map_err(|source| WalkError::Read { id: *id, source })? {
            open.push(*id);
        }
    }
    while let Some(id) = open.pop() {
        let tree = match load(source, &id) {
            // What is not there names nothing; whoever needs it is told by the doctor.
            Err(WalkError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            tree => tree?,
        };
        for entry in tree.entries() {
            match entry.node {
                Node::File { content, .. } => drop(named.insert(content)),
                Node::Directory { tree } => {
                    if named.insert(tree) {
                        open.push(tree);
                    }
                }
                Node::Link { .. } => {}
            }
        }
    }
    Ok(())
}

/// Tells whether an object is a tree, without reading more of it than its beginning. Any 64 digits of a log may be a name: most are
/// none of an object.
fn is_tree(source: &dyn ObjectSource, id: &BlobId) -> io::Result<bool> {
    let mut beginning = Beginning::default();
    match source.read(id, &mut beginning) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if beginning.0.len() < MAGIC.len() => Err(error),
        _ => Ok(beginning.0.starts_with(MAGIC)),
    }
}

/// Takes in the beginning of an object, and wants no more.
#[derive(Default)]
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() >= MAGIC.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
