//! Temporaries that are to go: those of a restore that was refused, and those that an interrupted one left.

use std::io;

use rekindle_domain::blob_id::BlobId;

use super::paths::join;
use super::refusal::{is_not_there, is_of_one_path};
use super::report::RestoreError;
use super::root::{Root, SeenKind};
use crate::objects::ObjectSource;
use crate::rules::is_temporary;
use crate::tree::{Limits, MAX_DEPTH, OwnedNode, TreeWalk};

/// Removes a temporary with everything in it, without following a link. One that is not there is fine.
pub(super) fn remove_whole(root: &dyn Root, path: &[u8]) -> io::Result<()> {
    // What was staged is no deeper than a tree.
    remove_below(root, path, MAX_DEPTH + 1)
}

fn remove_below(root: &dyn Root, path: &[u8], depth: usize) -> io::Result<()> {
    let removed = match root.stat(path)? {
        None => return Ok(()),
        Some(seen) if seen.kind == SeenKind::Directory => {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(io::Error::other("a temporary directory is deeper than any tree"));
            };
            for name in root.list(path)? {
                remove_below(root, &join(path, &name), depth)?;
            }
            root.remove_dir(path)
        }
        Some(_) => root.remove_file(path),
    };
    removed.or_else(|error| if is_not_there(&error) { Ok(()) } else { Err(error) })
}

/// Removes, durably, what an interrupted restore of a tree left under temporary names.
///
/// A temporary is always in a directory that the tree has. A directory that cannot be looked into is passed over: what is left
/// there is never captured and does no harm.
pub(super) fn remove_leftovers(
    root: &dyn Root,
    source: &dyn ObjectSource,
    tree: BlobId,
    limits: Limits,
) -> Result<(), RestoreError> {
    remove_leftovers_of(root, b"")?;
    for entry in TreeWalk::new(source, tree, limits) {
        // A tree that has been lost since leads no further; whoever wants it restored is told by the plan.
        let Ok(entry) = entry else { break };
        if let OwnedNode::Directory { .. } = entry.node {
            remove_leftovers_of(root, &entry.path)?;
        }
    }
    Ok(())
}

fn remove_leftovers_of(root: &dyn Root, directory: &[u8]) -> Result<(), RestoreError> {
    let remove = || -> io::Result<()> {
        let mut names = root.list(directory)?;
        names.retain(|name| is_temporary(name));
        for name in &names {
            remove_whole(root, &join(directory, name))?;
        }
        if names.is_empty() { Ok(()) } else { root.sync_dir(directory) }
    };
    match remove() {
        Err(error) if !is_of_one_path(&error) => {
            Err(RestoreError::Prepare { path: directory.to_vec(), source: error })
        }
        _ => Ok(()),
    }
}

/// Returns true if the file system takes names that differ in case alone for the same, in this directory.
///
/// It is asked with a temporary directory, which is gone again.
pub(super) fn folds_case(root: &dyn Root, directory: &[u8], name: &[u8]) -> io::Result<bool> {
    let path = join(directory, name);
    remove_whole(root, &path)?;
    root.make_dir(&path)?;
    let other = root.stat(&join(directory, &name.to_ascii_uppercase()));
    root.remove_dir(&path)?;
    Ok(other?.is_some())
}
