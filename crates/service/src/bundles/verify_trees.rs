//! Whole trees: whoever has a tree counts on everything in it. The trees of a bundle are looked at while they pass, and what they name
//! has to be in the bundle too, however many checkpoints share it: each object is looked at once.

use std::collections::HashMap;
use std::io::{self, Read};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::MAX_TREES;
use rekindle_workspace::tree::{Limits, MAGIC, MAX_TREE_BYTES, Node, Tree};

/// What has passed of a bundle's objects.
#[derive(Debug, Default)]
pub(super) struct WholeTrees {
    sizes: HashMap<BlobId, u64>,
    trees: HashMap<BlobId, PassedTree>,
    /// Bytes of the trees that have passed.
    bytes: u64,
    /// Trees that are whole.
    whole: HashMap<BlobId, Extent>,
}

/// A tree that has passed: what of it is in the bundle is known only at its end.
#[derive(Debug)]
struct PassedTree {
    files: Vec<(BlobId, u64)>,
    directories: Vec<BlobId>,
    entries: u64,
}

/// How much there is in a tree, in whatever is below it too.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    entries: u64,
    bytes: u64,
    depth: usize,
}

impl WholeTrees {
    /// Takes in an object. One that only looks like a tree is a file's content as any other.
    pub(super) fn note(&mut self, id: BlobId, size: u64, bytes: &mut dyn Read) -> io::Result<()> {
        self.sizes.insert(id, size);
        let mut content = Vec::new();
        (&mut *bytes).take(MAGIC.len() as u64).read_to_end(&mut content)?;
        if content != MAGIC || size > MAX_TREE_BYTES {
            return Ok(());
        }
        self.bytes += size;
        if self.bytes > MAX_TREES {
            return Err(io::Error::other(format!("it has more than {MAX_TREES} bytes of trees")));
        }
        bytes.read_to_end(&mut content)?;
        let Ok(tree) = Tree::parse(content) else { return Ok(()) };
        let mut passed = PassedTree { files: Vec::new(), directories: Vec::new(), entries: 0 };
        for entry in tree.entries() {
            passed.entries += 1;
            match entry.node {
                Node::File { size, content, .. } => passed.files.push((content, size)),
                Node::Directory { tree } => passed.directories.push(tree),
                Node::Link { .. } => {}
            }
        }
        self.trees.insert(id, passed);
        Ok(())
    }

    /// Tells whether an object is in the bundle.
    pub(super) fn has(&self, id: &BlobId) -> bool {
        self.sizes.contains_key(id)
    }

    /// Tells why a tree cannot be used, if it cannot: something in it is missing, or there is more than anybody walks through.
    pub(super) fn check(&mut self, root: &BlobId) -> Result<(), String> {
        // Trees whose directories are looked at, from the root down; no recursion, because a bundle says how deep it goes.
        let mut open = vec![*root];
        while let Some(id) = open.last().copied() {
            let passed = self.trees.get(&id).ok_or_else(|| format!("its tree {id} is missing"))?;
            let missing = passed.directories.iter().find(|below| !self.whole.contains_key(below));
            if self.whole.contains_key(&id) {
                open.pop();
            } else if let Some(below) = missing {
                open.push(*below);
                if open.len() > Limits::default().depth {
                    return Err("its directories are nested too deeply".into());
                }
            } else {
                let extent = self.extent(passed)?;
                self.whole.insert(id, extent);
                open.pop();
            }
        }
        Ok(())
    }

    /// Returns how much there is in a tree whose directories are whole.
    fn extent(&self, passed: &PassedTree) -> Result<Extent, String> {
        let mut extent = Extent { entries: passed.entries, ..Extent::default() };
        for (content, size) in &passed.files {
            if self.sizes.get(content) != Some(size) {
                return Err(format!("a file's content is missing: {content}"));
            }
            extent.bytes = extent.bytes.saturating_add(*size);
        }
        for below in passed.directories.iter().filter_map(|below| self.whole.get(below)) {
            extent.entries = extent.entries.saturating_add(below.entries);
            extent.bytes = extent.bytes.saturating_add(below.bytes);
            extent.depth = extent.depth.max(below.depth + 1);
        }
        let most = Limits::default();
        if extent.entries > most.entries || extent.bytes > most.bytes || extent.depth > most.depth {
            return Err("it has more entries than a directory may have".into());
        }
        Ok(extent)
    }
}
