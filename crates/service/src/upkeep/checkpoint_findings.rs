//! What is wrong with checkpoints of runs and with restores, for `doctor`: files that a record names and that are not there, and
//! restores that have not come to their end.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_store::blobs::Blobs;
use rekindle_store::check::{Code, Finding};
use rekindle_store::disk::{SharedDisk, if_exists, read_all};
use rekindle_store::home;
use rekindle_store::offline::Offline;
use rekindle_workspace::restore::Journal;
use rekindle_workspace::tree::{Node, load, short_name};

use super::checkpoint_records::{CheckpointRecords, RecordedCheckpoint};
use super::expired_checkpoints;
use crate::error::chain;
use crate::workspaces::BlobSource;

/// Objects of one checkpoint that are looked for in vain before it counts as lost: more would tell nothing new.
const MOST_MISSING: usize = 20;

/// Largest journal of a restore that is read.
const MAX_JOURNAL: u64 = 1 << 20;

/// Looks for the files of all checkpoints, and for restores that have not come to their end.
pub(super) fn inspect_checkpoints(disk: &SharedDisk, offline: &Offline) -> io::Result<Vec<Finding>> {
    let records = CheckpointRecords::read(offline)?;
    let mut findings = lost_checkpoints(disk, offline, &records.checkpoints);
    findings.extend(left_restores(disk, offline, &records)?);
    Ok(findings)
}

fn lost_checkpoints(
    disk: &SharedDisk,
    offline: &Offline,
    checkpoints: &[RecordedCheckpoint],
) -> Vec<Finding> {
    let layout = offline.layout();
    let blobs = Blobs::reading(disk.clone(), layout.clone());
    let mut search = Search { source: BlobSource(blobs.clone()), blobs, seen: HashSet::new() };
    let (mut lost, mut let_go) = (Vec::new(), 0_u64);
    // Read before anything is looked for: what is let go meanwhile is noted by then, or looked at once more.
    let noted = expired_checkpoints::read(&**disk, layout);
    for checkpoint in checkpoints {
        let Some(tree) = checkpoint.tree else { continue };
        if noted.contains(&short_name(&tree)) {
            let_go += 1;
        } else if let Some(problem) = search.problem(tree) {
            match checkpoint.is_foreign {
                true => let_go += 1,
                false => lost.push((checkpoint, tree, problem)),
            }
        }
    }
    if !lost.is_empty() {
        let noted = expired_checkpoints::read(&**disk, layout);
        let before = lost.len();
        lost.retain(|(_, tree, _)| !noted.contains(&short_name(tree)));
        let_go += (before - lost.len()) as u64;
    }
    let summary = (let_go > 0).then(|| {
        let what = format!("Checkpoints whose files are no longer kept, or were not part of an import: {let_go}.");
        let remedy = "Nothing to do: the changes of these runs to their files can no longer be shown or undone; the sessions are complete.";
        Finding::new(Code::CheckpointExpired, layout.blobs(), what, remedy)
    });
    let told = lost.into_iter().map(|(checkpoint, tree, problem)| {
        let (session, seq) = (checkpoint.session, checkpoint.seq);
        let what = format!(
            "Some files of a checkpoint are missing: {problem}. It is {}, record {seq} of {session}.",
            short_name(&tree)
        );
        let remedy = "Restore blobs/ from a backup, beside what is there. The session is whole: only what this run did to its files \
                      cannot be shown or undone.";
        Finding::new(Code::CheckpointDamaged, layout.log(session), what, remedy)
    });
    told.chain(summary).collect()
}

/// A search through trees, each object once.
struct Search {
    blobs: Blobs,
    source: BlobSource,
    seen: HashSet<BlobId>,
}

impl Search {
    /// Says what is missing of a tree and what it names, as far as it was not looked for before.
    fn problem(&mut self, root: BlobId) -> Option<String> {
        let (mut missing, mut open): (Vec<String>, _) = (Vec::new(), Vec::new());
        if self.seen.insert(root) {
            open.push(root);
        }
        while let Some(id) = open.pop() {
            let tree = match load(&self.source, &id) {
                Ok(tree) => tree,
                Err(error) => {
                    // Whoever names it too lacks it as well.
                    self.seen.remove(&id);
                    missing.push(format!("{id} cannot be read: {}", chain(&error)));
                    continue;
                }
            };
            for entry in tree.entries() {
                match entry.node {
                    Node::File { content, .. } if self.seen.insert(content) => {
                        if !self.blobs.contains(&content).unwrap_or(false) {
                            self.seen.remove(&content);
                            missing.push(format!("{content} is missing"));
                        }
                    }
                    Node::Directory { tree } if self.seen.insert(tree) => open.push(tree),
                    Node::File { .. } | Node::Directory { .. } | Node::Link { .. } => {}
                }
            }
            if missing.len() >= MOST_MISSING {
                break;
            }
        }
        let first = missing.first()?;
        let more =
            if missing.len() > 1 { format!(", and {} more", missing.len() - 1) } else { String::new() };
        Some(format!("{first}{more}"))
    }
}

fn left_restores(
    disk: &SharedDisk,
    offline: &Offline,
    records: &CheckpointRecords,
) -> io::Result<Vec<Finding>> {
    let layout = offline.layout();
    let directory = layout.restoring();
    let mut findings = Vec::new();
    for entry in if_exists(disk.list(&directory))?.unwrap_or_default() {
        let path = directory.join(&entry.name);
        // A lock means nothing by itself.
        if path.extension().is_some_and(|extension| extension == "lock") {
            continue;
        }
        // One that is gone has come to its end since it was listed.
        let Some(bytes) = if_exists(read_all(&**disk, &path, MAX_JOURNAL))? else { continue };
        let works_in =
            records.directories.iter().find(|(root, _)| layout.restore_journal(&canonical(root)) == path);
        let of_session = works_in.is_some_and(|(_, is_restoring)| *is_restoring);
        let place = works_in.map_or_else(|| "a directory".into(), |(root, _)| root.clone());
        findings.push(match serde_json::from_slice::<Journal>(&bytes) {
            Ok(journal) => left_restore(path, &place, &journal, of_session || home::owner(&**disk, layout).is_some()),
            Err(error) => {
                let what = format!("The journal of a restore of {place} cannot be read: {error}.");
                let remedy = "Keep it: it names the files that the directory had before. Restore it from a backup, or restore the directory again.";
                Finding::new(Code::RestoreLeft, path, what, remedy)
            }
        });
    }
    Ok(findings)
}

fn left_restore(path: PathBuf, place: &str, journal: &Journal, goes_on: bool) -> Finding {
    let (from, to) = (short_name(&journal.from), short_name(&journal.to));
    let what =
        format!("A restore of {place} was interrupted: some files are from {to}, others still from {from}.");
    let remedy = if goes_on {
        format!(
            "Nothing to do if it is still running, or a session waits for it: the daemon finishes it. Otherwise restore {to} there once more, or {from} to go back."
        )
    } else {
        format!(
            "Restore {to} there once more to finish it, or {from} to go back; until then the directory is not captured."
        )
    };
    Finding::new(Code::RestoreLeft, path, what, remedy)
}

/// Returns a directory by the name under which its restores are kept.
fn canonical(root: &str) -> PathBuf {
    let root = Path::new(root);
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

#[cfg(test)]
mod tests;
