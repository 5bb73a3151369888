//! Checkpoints of runs that are kept, and those that are let go: a log names its trees for ever, and old ones do not count any more.
//! The records stay as they are; whoever asks for the files is told that they are not kept.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rekindle_domain::event::{Event, RunCheckpoint};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Line;
use rekindle_store::Want;
use rekindle_store::blob_references::{BlobReferences, add_names, referenced_blobs_elsewhere};
use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::{Layout, SessionFile, session_file};
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use rekindle_workspace::tree::{Node, load};

use super::CheckpointRetention;
use crate::workspaces::BlobSource;

/// What is named in a home, without what was let go.
pub(super) struct Kept {
    pub(super) references: BlobReferences,
    /// How many checkpoints were let go.
    pub(super) expired: u64,
}

/// A checkpoint that some record has.
struct Found {
    taken: SystemTime,
    tree: Option<BlobId>,
    /// Lists that were too long for its record.
    lists: Vec<BlobId>,
    /// It stays whatever its age is.
    is_held: bool,
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
    let (mut found, mut named, mut read) = (Vec::new(), HashSet::new(), HashSet::new());
    for session in offline.sessions()? {
        // One that cannot be read is looked into as any other file.
        if read_session(&offline, session, &mut found, &mut named).is_ok() {
            read.insert(session);
        }
    }
    // What is in the caches of a session is in its log too, and counts as it does there.
    let passes_over = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match session_file(name) {
            SessionFile::Log(session) | SessionFile::Snapshot(session) => read.contains(&session),
            SessionFile::Index => true,
            _ => false,
        }
    };
    let mut references = referenced_blobs_elsewhere(&**disk, layout, &passes_over)?;
    references.referenced.extend(named);
    let total = found.len() as u64;
    let kept = choose(found, blobs, retention, now)?;
    let expired = total - kept.len() as u64;
    references.referenced.extend(kept.into_iter().flat_map(|one| one.lists.into_iter().chain(one.tree)));
    Ok(Kept { references, expired })
}

/// Reads what a session's log names: checkpoints apart, and everything else.
fn read_session(
    offline: &Offline,
    session: SessionId,
    found: &mut Vec<Found>,
    named: &mut HashSet<BlobId>,
) -> io::Result<()> {
    let state = offline.load(session, Want::Status).map_err(io::Error::other)?.state;
    let open = state.open_run().map(|run| run.run_id);
    let reader = offline.reader(session)?;
    let (mut lines, mut own) = (reader.forward(Cursor::START), Vec::new());
    while let Some(raw) = lines.next()? {
        match Line::parse(raw.bytes).ok().and_then(|line| checkpoint(&line, open)) {
            Some(checkpoint) => own.push(checkpoint),
            None => add_names(raw.bytes, named),
        }
    }
    found.append(&mut own);
    Ok(())
}

fn checkpoint(line: &Line<'_>, open: Option<RunId>) -> Option<Found> {
    if line.kind != "run.checkpoint" {
        return None;
    }
    let Ok(Event::RunCheckpoint(record)) = line.event() else { return None };
    let millis = u64::try_from(line.time().as_millis()).unwrap_or(0);
    let taken = UNIX_EPOCH + Duration::from_millis(millis);
    let skipped = record.skipped.as_ref().and_then(|skipped| skipped.all);
    let touched = record.files_touched.as_ref().and_then(|touched| touched.all);
    let lists = skipped.into_iter().chain(touched).collect();
    Some(Found { taken, tree: record.tree, lists, is_held: is_held(&record, open) })
}

/// Tells whether a checkpoint stays whatever its age is: an open run names it. Whoever else relies on one, as a fork of the session at this run would, is
/// to be asked here.
fn is_held(record: &RunCheckpoint, open: Option<RunId>) -> bool {
    open == Some(record.run_id)
}

/// Chooses the checkpoints that are kept: those that are held, then the newest, as long as they are young and there is room.
fn choose(
    mut found: Vec<Found>,
    blobs: &Blobs,
    retention: CheckpointRetention,
    now: SystemTime,
) -> io::Result<Vec<Found>> {
    found.sort_by_key(|checkpoint| (!checkpoint.is_held, Reverse(checkpoint.taken)));
    let source = BlobSource(blobs.clone());
    let (mut seen, mut bytes, mut kept) = (HashSet::new(), 0_u64, Vec::new());
    for checkpoint in found {
        let age = now.duration_since(checkpoint.taken).unwrap_or_default();
        if !checkpoint.is_held && (age > retention.keep || bytes > retention.max_bytes) {
            continue;
        }
        bytes += weigh(&checkpoint, &source, blobs, &mut seen)?;
        if checkpoint.is_held || bytes <= retention.max_bytes {
            kept.push(checkpoint);
        }
    }
    Ok(kept)
}

/// Returns how much room a checkpoint takes beside what was seen before, and adds what it names to that.
fn weigh(
    checkpoint: &Found,
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
    for list in &checkpoint.lists {
        note(*list)?;
    }
    let mut open = Vec::new();
    if let Some(tree) = checkpoint.tree
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
