//! What has to change so that a directory becomes what a tree says: decided from the two trees alone, nothing is touched.
//! Subtrees with the same name are not looked into. What a capture did not look at is never taken away.

use std::collections::BTreeSet;

use rekindle_domain::blob_id::BlobId;

use super::collision::{self, Collision};
use super::journal::Journal;
use super::lookup::Began;
use super::paths::{below, join, split, with_ancestors};
use super::report::{Left, LeftWhy};
use super::side::Side;
use crate::objects::ObjectSource;
use crate::tree::{Entry, LimitReached, Limits, Node, OwnedNode, TreeWalk, WalkError, WalkedEntry, load};

/// Everything that a restore would change.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What changes, in the order of paths. No change lies below another one.
    pub changes: Vec<Change>,
    /// What stays although the wanted tree does not have it.
    pub left: Vec<Left>,
    /// Names that could not both be written to a file system without case.
    pub collisions: Vec<Collision>,
}

/// One path that changes, with everything below it.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The path from the root.
    pub path: Vec<u8>,
    /// What is there now, as it was captured.
    pub before: Option<OwnedNode>,
    /// What is wanted there.
    pub after: Option<OwnedNode>,
    /// What has to be taken away first or altogether: what is in a directory before the directory.
    ///
    /// A file or link that is replaced is not among it: its successor takes its place at once.
    pub removes: Vec<WalkedEntry>,
    /// What has to be there: a directory before what is in it.
    pub creates: Vec<WalkedEntry>,
}

/// Decides what has to change. Every tree object that is needed is read and checked here, and limits hold, so that a tree that
/// is damaged or hostile is refused before anything is written.
///
/// `began` is the journal of an earlier attempt. Since then the rules may have changed with the files that say them: only what
/// one of its trees has is taken away.
pub fn plan(
    source: &dyn ObjectSource,
    now: &Side<'_>,
    wanted: &Side<'_>,
    began: Option<&Journal>,
    limits: Limits,
) -> Result<Plan, WalkError> {
    let began = began.map(|journal| Began::new(source, journal));
    let mut planner =
        Planner { source, now, wanted, began, limits, entries: 0, bytes: 0, plan: Plan::default() };
    planner.compare(now.tree, wanted.tree, &mut Vec::new(), 0)?;
    Ok(planner.plan)
}

struct Planner<'a> {
    source: &'a dyn ObjectSource,
    now: &'a Side<'a>,
    wanted: &'a Side<'a>,
    began: Option<Began<'a>>,
    limits: Limits,
    entries: u64,
    bytes: u64,
    plan: Plan,
}

impl Planner<'_> {
    /// Compares two directories. Recursion ends at the limit of depth.
    fn compare(
        &mut self,
        now: BlobId,
        wanted: BlobId,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), WalkError> {
        if now == wanted {
            return Ok(());
        }
        if depth > self.limits.depth {
            return Err(WalkError::Limit(LimitReached::Depth(self.limits.depth)));
        }
        let (now, wanted) = (load(self.source, &now)?, load(self.source, &wanted)?);
        let (mut before, mut after) = (now.entries().peekable(), wanted.entries().peekable());
        let length = path.len();
        let mut writes = false;
        loop {
            let name = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(one), None) => one.name,
                (None, Some(other)) => other.name,
                (Some(one), Some(other)) => one.name.min(other.name),
            };
            let one = before.next_if(|entry| entry.name == name).map(|Entry { node, .. }| node);
            let other = after.next_if(|entry| entry.name == name).map(|Entry { node, .. }| node);
            self.count(1, 0)?;
            if one == other {
                continue;
            }
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            if let (Some(Node::Directory { tree: one }), Some(Node::Directory { tree: other })) = (one, other)
            {
                self.compare(one, other, path, depth + 1)?;
            } else {
                writes |= other.is_some();
                self.change(path, one.map(OwnedNode::from), other.map(OwnedNode::from), depth)?;
            }
            path.truncate(length);
        }
        if writes && let Some((first, second)) = collision::find(wanted.entries().map(|entry| entry.name)) {
            let (first, second) = (join(path, first), join(path, second));
            self.plan.collisions.push(Collision { directory: path.clone(), first, second });
        }
        Ok(())
    }

    fn change(
        &mut self,
        path: &[u8],
        before: Option<OwnedNode>,
        after: Option<OwnedNode>,
        depth: usize,
    ) -> Result<(), WalkError> {
        // A directory that was skipped is another session's, or cannot be looked into.
        let is_directory = matches!(after, Some(OwnedNode::Directory { .. }));
        if before.is_none() && is_directory && self.now.skipped.covers(path) {
            self.leave(path, LeftWhy::SkippedNow);
            return Ok(());
        }
        let mut removes = Vec::new();
        let is_taken_away = after.is_none() || matches!(before, Some(OwnedNode::Directory { .. }));
        if let Some(node) = before.as_ref().filter(|_| is_taken_away) {
            let (gone, kept) = self.removable(self.whole(path, node, depth)?)?;
            if after.is_some() && !kept.is_empty() {
                self.leave(path, LeftWhy::UnknownFiles);
                return Ok(());
            }
            self.plan.left.extend(kept);
            removes = gone;
        }
        let creates = match &after {
            Some(node) => self.whole(path, node, depth)?,
            None => Vec::new(),
        };
        let content = |entry: &WalkedEntry| match entry.node {
            OwnedNode::File { size, .. } => size,
            OwnedNode::Link { .. } | OwnedNode::Directory { .. } => 0,
        };
        self.count(removes.len() as u64 + creates.len() as u64, 0)?;
        self.count(0, creates.iter().map(content).fold(0, u64::saturating_add))?;
        if let Some((first, second)) = collision::find(creates.iter().map(|entry| entry.path.as_slice())) {
            let directory = split(path).0.to_vec();
            let (first, second) = (first.to_vec(), second.to_vec());
            self.plan.collisions.push(Collision { directory, first, second });
        }
        if !removes.is_empty() || !creates.is_empty() {
            let path = path.to_vec();
            self.plan.changes.push(Change { path, before, after, removes, creates });
        }
        Ok(())
    }

    /// Returns a path with everything below it, a directory before what is in it.
    fn whole(&self, path: &[u8], node: &OwnedNode, depth: usize) -> Result<Vec<WalkedEntry>, WalkError> {
        let mut entries = vec![WalkedEntry { path: path.to_vec(), node: node.clone() }];
        if let OwnedNode::Directory { tree } = node {
            let left = Limits {
                entries: self.limits.entries.saturating_sub(self.entries),
                depth: self.limits.depth.saturating_sub(depth + 1),
                bytes: self.limits.bytes.saturating_sub(self.bytes),
            };
            for entry in TreeWalk::new(self.source, *tree, left) {
                let entry = entry.map_err(|error| self.own_limit(error))?;
                entries.push(WalkedEntry { path: join(path, &entry.path), node: entry.node });
            }
        }
        Ok(entries)
    }

    /// Splits what the wanted tree does not have into what goes, innermost first, and what stays, each with its reason.
    fn removable(&self, entries: Vec<WalkedEntry>) -> Result<(Vec<WalkedEntry>, Vec<Left>), WalkError> {
        let mut kept: Vec<Left> = Vec::new();
        let mut gone = Vec::new();
        for entry in entries {
            if kept.last().is_some_and(|left| below(&entry.path, &left.path).is_some()) {
                continue;
            }
            match self.reason_to_keep(&entry)? {
                Some(why) => kept.push(Left { path: entry.path, why }),
                None => gone.push(entry),
            }
        }
        let needed: BTreeSet<&[u8]> = kept.iter().flat_map(|left| with_ancestors(&left.path)).collect();
        gone.retain(|entry| !needed.contains(entry.path.as_slice()));
        gone.reverse();
        Ok((gone, kept))
    }

    fn reason_to_keep(&self, entry: &WalkedEntry) -> Result<Option<LeftWhy>, WalkError> {
        let path = entry.path.as_slice();
        let is_dir = matches!(entry.node, OwnedNode::Directory { .. });
        Ok(if self.wanted.skipped.covers(path) || self.now.skipped.covers(path) {
            Some(LeftWhy::Skipped)
        } else if (self.wanted.ignores)(path, is_dir) || (self.now.ignores)(path, is_dir) {
            Some(LeftWhy::Ignored)
        } else if let Some(began) = &self.began
            && !began.knows(path)?
        {
            Some(LeftWhy::Appeared)
        } else {
            None
        })
    }

    fn leave(&mut self, path: &[u8], why: LeftWhy) {
        self.plan.left.push(Left { path: path.to_vec(), why });
    }

    fn count(&mut self, entries: u64, bytes: u64) -> Result<(), WalkError> {
        self.entries = self.entries.saturating_add(entries);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.entries > self.limits.entries {
            return Err(WalkError::Limit(LimitReached::Entries(self.limits.entries)));
        }
        if self.bytes > self.limits.bytes {
            return Err(WalkError::Limit(LimitReached::Bytes(self.limits.bytes)));
        }
        Ok(())
    }

    /// Returns an error of a part in terms of the whole.
    fn own_limit(&self, error: WalkError) -> WalkError {
        match error {
            WalkError::Limit(LimitReached::Entries(_)) => {
                WalkError::Limit(LimitReached::Entries(self.limits.entries))
            }
            WalkError::Limit(LimitReached::Depth(_)) => {
                WalkError::Limit(LimitReached::Depth(self.limits.depth))
            }
            WalkError::Limit(LimitReached::Bytes(_)) => {
                WalkError::Limit(LimitReached::Bytes(self.limits.bytes))
            }
            other => other,
        }
    }
}
