//! Comparison of two trees: which paths were added, deleted or changed. Directories with the same name on both sides are equal
//! and not read. `lines` looks into files; here nothing is known of them but their hashes.

mod lines;

pub use lines::{
    COUNT_TIME, Diff, LineCounts, MAX_COUNTED_BYTES, MAX_DIFF_BYTES, count_lines, quoted, write_unified,
};

use std::cmp::Ordering;

use rekindle_domain::blob_id::BlobId;
use serde::{Deserialize, Serialize};

use crate::objects::ObjectSource;
use crate::tree::{Entry, LimitReached, Limits, OwnedNode, Tree, WalkError, load};

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there before.
    Added,
    /// A file has another content, perhaps another mode too; a link another target.
    Modified,
    /// It is not there any more.
    Deleted,
    /// It is something else: a file became a link, a directory a file.
    TypeChanged,
    /// A file may be used otherwise; its content is the same.
    ModeChanged,
}

/// A path that is not the same in two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The path from the root.
    pub path: Vec<u8>,
    /// What happened to it.
    pub change: Change,
    /// What was there.
    pub old: Option<OwnedNode>,
    /// What is there now.
    pub new: Option<OwnedNode>,
}

impl Changed {
    /// Returns true if this is about a directory alone: it came or went, and what is in it follows.
    pub fn is_directory(&self) -> bool {
        let is_directory =
            |node: &Option<OwnedNode>| matches!(node, None | Some(OwnedNode::Directory { .. }));
        is_directory(&self.old) && is_directory(&self.new)
    }
}

/// A comparison in progress. Changes come in the order of a walk: a directory before what is in it.
///
/// A directory that came, went or became something else is told, and then everything in it. Limits are on the entries that
/// are looked at, not on those that changed.
pub struct Comparison<'a> {
    source: &'a dyn ObjectSource,
    limits: Limits,
    entries: u64,
    open: Vec<Level>,
    path: Vec<u8>,
    start: Option<(Option<BlobId>, Option<BlobId>)>,
}

/// A pair of directories with the same path.
struct Level {
    old: Side,
    new: Side,
    /// Length of their path, slash included.
    path: usize,
}

/// One directory of a pair, as far as it has been read; none if there is none on this side.
struct Side(Option<(Tree, usize)>);

impl Side {
    fn peek(&self) -> Option<(Entry<'_>, usize)> {
        let (tree, at) = self.0.as_ref()?;
        tree.entry_at(*at)
    }

    fn go_to(&mut self, next: usize) {
        if let Some((_, at)) = &mut self.0 {
            *at = next;
        }
    }
}

/// Compares two trees by their hashes; without one, everything was added or deleted.
pub fn compare(
    source: &dyn ObjectSource,
    old: Option<BlobId>,
    new: Option<BlobId>,
    limits: Limits,
) -> Comparison<'_> {
    let start = (old != new).then_some((old, new));
    Comparison { source, limits, entries: 0, open: Vec::new(), path: Vec::new(), start }
}

impl Comparison<'_> {
    fn enter(&mut self, old: Option<BlobId>, new: Option<BlobId>) -> Result<(), WalkError> {
        if self.open.len() > self.limits.depth {
            return Err(WalkError::Limit(LimitReached::Depth(self.limits.depth)));
        }
        let side = |id: Option<BlobId>| -> Result<Side, WalkError> {
            let tree = id.map(|id| load(self.source, &id)).transpose()?;
            Ok(Side(tree.map(|tree| {
                let start = tree.start();
                (tree, start)
            })))
        };
        let level = Level { old: side(old)?, new: side(new)?, path: self.path.len() };
        self.open.push(level);
        Ok(())
    }

    /// Returns the next name of the innermost pair with what it is on each side; nothing at the end of everything.
    fn next_pair(&mut self) -> Option<(Option<OwnedNode>, Option<OwnedNode>)> {
        loop {
            let level = self.open.last_mut()?;
            self.path.truncate(level.path);
            let (old, new) = (level.old.peek(), level.new.peek());
            let order = match (&old, &new) {
                (None, None) => {
                    self.open.pop();
                    continue;
                }
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.name.cmp(new.name),
            };
            let old = old
                .filter(|_| order.is_le())
                .map(|(entry, next)| (entry.name.to_vec(), entry.node.into(), next));
            let new = new
                .filter(|_| order.is_ge())
                .map(|(entry, next)| (entry.name.to_vec(), entry.node.into(), next));
            let mut pair = (None, None);
            if let Some((name, node, next)) = new {
                level.new.go_to(next);
                self.path.extend_from_slice(&name);
                pair.1 = Some(node);
            }
            if let Some((name, node, next)) = old {
                level.old.go_to(next);
                self.path.truncate(level.path);
                self.path.extend_from_slice(&name);
                pair.0 = Some(node);
            }
            return Some(pair);
        }
    }

    fn step(&mut self) -> Result<Option<Changed>, WalkError> {
        if let Some((old, new)) = self.start.take() {
            self.enter(old, new)?;
        }
        while let Some((old, new)) = self.next_pair() {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(WalkError::Limit(LimitReached::Entries(self.limits.entries)));
            }
            if old == new {
                continue;
            }
            let path = self.path.clone();
            let inside = (directory(&old), directory(&new));
            if inside != (None, None) {
                self.path.push(b'/');
                self.enter(inside.0, inside.1)?;
            }
            if let Some(change) = change(old.as_ref(), new.as_ref()) {
                return Ok(Some(Changed { path, change, old, new }));
            }
        }
        Ok(None)
    }
}

impl Iterator for Comparison<'_> {
    type Item = Result<Changed, WalkError>;

    /// Returns the next change. After an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.open.clear();
        }
        step.transpose()
    }
}

fn directory(node: &Option<OwnedNode>) -> Option<BlobId> {
    match node {
        Some(OwnedNode::Directory { tree }) => Some(*tree),
        _ => None,
    }
}

/// Returns what happened between two nodes that differ; nothing for directories, in which something did.
fn change(old: Option<&OwnedNode>, new: Option<&OwnedNode>) -> Option<Change> {
    use OwnedNode::{Directory, File, Link};
    match (old, new) {
        (None, None) | (Some(Directory { .. }), Some(Directory { .. })) => None,
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Deleted),
        (Some(File { content: old, .. }), Some(File { content: new, .. })) if old == new => {
            Some(Change::ModeChanged)
        }
        (Some(File { .. }), Some(File { .. })) | (Some(Link { .. }), Some(Link { .. })) => {
            Some(Change::Modified)
        }
        (Some(_), Some(_)) => Some(Change::TypeChanged),
    }
}

#[cfg(test)]
mod tests;
