//! Checkpoints of runs that are kept, and those that are let go: a log names its trees for ever, and old ones do not count any more.
//! The records stay as they are; whoever asks for the files is told that they are not kept.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use rekindle_store::blob_references::{BlobReferences, referenced_blobs_elsewhere};
use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::{Layout, SessionFile, session_file};
use rekindle_store::offline::Offline;
use rekindle_workspace::tree::{Node, load};

use super::super::checkpoint_records::{CheckpointRecords, RecordedCheckpoint};
use super::CheckpointRetention;
use crate::workspaces::BlobSource;

/// What is named in a home, without what was let go.
pub(super) struct Kept {
    pub(super) references: BlobReferences,
    /// How many checkpoints were let go.
    pub(super) expired: u64,
    /// The trees of these, as far as nobody else names them.
    pub(super) expired_trees: BTreeSet<BlobId>,
    /// The room that those take that are kept.
    pub(super) bytes: u64,
}

/// Finds what is named in a home, but for checkpoints that are too old or too much.
pub(super) fn references(
    disk: &SharedDisk,
    layout: &Layout,
    blobs: &Blobs,
    retention: CheckpointRetention,
    now: SystemTime,
) -> io::Result<Kept> {
    let offline = Offline::open(disk.clone(), layout.home()).map_err(io::Error::other)?;
    let CheckpointRecords { mut checkpoints, named, read, .. } = CheckpointRecords::read(&offline)?;
    // What is in the caches of a session is in its log too, and counts as it does there. A log that cannot be read is looked into as
    // any other file.
    let passes_over = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match session_file(name) {
            SessionFile::Log(session) | SessionFile::Base(session) | SessionFile::Snapshot(session) => {
                read.contains(&session)
            }
            SessionFile::Index => true,
            _ => false,
        }
    };
    let mut references = referenced_blobs_elsewhere(&**disk, layout, &passes_over)?;
    references.referenced.extend(named);
    // A kept snapshot, a restore that has not come to its end, a snapshot that is kept by name: whoever needs a tree needs what its
    // record says of it too.
    let is_named = |tree: BlobId| references.referenced.contains(&tree);
    checkpoints.iter_mut().for_each(|one| one.is_held |= one.tree.is_some_and(is_named));
    let all: Vec<BlobId> = checkpoints.iter().filter_map(|one| one.tree).collect();
    let total = checkpoints.len() as u64;
    let (kept, bytes) = choose(checkpoints, blobs, retention, now)?;
    let expired = total - kept.len() as u64;
    references.referenced.extend(kept.into_iter().flat_map(|one| one.lists.into_iter().chain(one.tree)));
    let expired_trees = all.into_iter().filter(|tree| !references.referenced.contains(tree)).collect();
    Ok(Kept { references, expired, expired_trees, bytes })
}

/// Chooses the checkpoints that are kept: those that are held, then the newest, as long as they are young and there is room. Returns
/// them, and the room that they take.
fn choose(
    mut found: Vec<RecordedCheckpoint>,
    blobs: &Blobs,
    retention: CheckpointRetention,
    now: SystemTime,
) -> io::Result<(Vec<RecordedCheckpoint>, u64)> {
    found.sort_by_key(|checkpoint| (!checkpoint.is_held, Reverse(checkpoint.taken)));
    let source = BlobSource(blobs.clone());
    let (mut seen, mut bytes, mut taken, mut kept) = (HashSet::new(), 0_u64, 0, Vec::new());
    for checkpoint in found {
        let age = now.duration_since(checkpoint.taken).unwrap_or_default();
        if !checkpoint.is_held && (age > retention.keep || bytes > retention.max_bytes) {
            continue;
        }
        bytes += weigh((checkpoint.tree, &checkpoint.lists), &source, blobs, &mut seen)?;
        if checkpoint.is_held || bytes <= retention.max_bytes {
            taken = bytes;
            kept.push(checkpoint);
        }
    }
    Ok((kept, taken))
}

/// Returns how much room a tree and some blobs take beside what was seen before, and adds what they name to that.
pub(super) fn weigh(
    (tree, others): (Option<BlobId>, &[BlobId]),
    source: &BlobSource,
    blobs: &Blobs,
    seen: &mut HashSet<BlobId>,
) -> io::Result<u64> {
    let mut bytes = 0;
    let mut note = |id: BlobId| -> io::Result<bool> {
        let is_new = seen.insert(id);
        if is_new {
            bytes += blobs.stored_size(&id).map_err(io::Error::other)?.unwrap_or(0);
        }
        Ok(is_new)
    };
    for other in others {
        note(*other)?;
    }
    let mut open = Vec::new();
    if let Some(tree) = tree
        && note(tree)?
    {
        open.push(tree);
    }
    while let Some(id) = open.pop() {
        // What a tree names that cannot be read nobody knows; the collection says so.
        let Ok(tree) = load(source, &id) else { continue };
        for entry in tree.entries() {
            match entry.node {
                Node::File { content, .. } => drop(note(content)?),
                Node::Directory { tree } => {
                    if note(tree)? {
                        open.push(tree);
                    }
                }
                Node::Link { .. } => {}
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
