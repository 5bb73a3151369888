//! A directory while it is being captured: what is known of it so far, and the tree that comes of it.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Totals;
use super::listing::Names;
use crate::record::{Found, RecordEntries, RecordView};
use crate::rules::{Decision, DirRules};
use crate::stamp::DirectoryStamp;
use crate::tree::{Entry, FileMode, Node as TreeNode, Tree, TreeBuilder};

/// Something to do.
pub(super) enum Task<'a> {
    Directory(Arc<Node<'a>>),
    Part {
        node: Arc<Node<'a>>,
        directory: Arc<OwnedFd>,
        range: Range<usize>,
        known: Option<RecordEntries<'a>>,
    },
}

/// A directory that is being captured.
pub(super) struct Node<'a> {
    /// The directory around it, and its place there.
    pub(super) parent: Option<(Arc<Node<'a>>, usize)>,
    /// Its path from the root, with a slash at its end unless it is the root.
    pub(super) path: Vec<u8>,
    pub(super) depth: usize,
    pub(super) above: Arc<DirRules>,
    pub(super) decision: Decision,
    /// Parts, directories in it, and the listing itself, as far as they are not done.
    pub(super) unfinished: AtomicUsize,
    pub(super) listing: OnceLock<Listing<'a>>,
    pub(super) contents: Mutex<Contents>,
}

pub(super) struct Listing<'a> {
    pub(super) names: Names,
    /// The directory's stamp from before it was listed, if it can be trusted.
    pub(super) stamp: Option<DirectoryStamp>,
    pub(super) rules: Arc<DirRules>,
    pub(super) known: Option<RecordView<'a>>,
    /// What was decided about known names holds.
    pub(super) same_rules: bool,
}

#[derive(Default)]
pub(super) struct Contents {
    pub(super) found: Vec<Found>,
    /// What the directories in it amount to.
    pub(super) below: Totals,
}

impl<'a> Node<'a> {
    pub(super) fn root(above: Arc<DirRules>) -> Node<'a> {
        Node::new(None, Vec::new(), 0, above, Decision::Include)
    }

    pub(super) fn new(
        parent: Option<(Arc<Node<'a>>, usize)>,
        path: Vec<u8>,
        depth: usize,
        above: Arc<DirRules>,
        decision: Decision,
    ) -> Node<'a> {
        let unfinished = AtomicUsize::new(1);
        Node {
            parent,
            path,
            depth,
            above,
            decision,
            unfinished,
            listing: OnceLock::new(),
            contents: Mutex::default(),
        }
    }

    pub(super) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [&self.path, name].concat()
    }
}

/// Makes the tree of a directory; nothing if it has more in it than a tree object holds.
pub(super) fn build(names: &Names, found: &[Found]) -> Option<Tree> {
    let mut builder = TreeBuilder::new();
    for (index, found) in found.iter().enumerate() {
        let node = match found {
            Found::File { stamp, content, .. } => TreeNode::File {
                mode: FileMode::from_permissions(stamp.mode),
                size: stamp.size,
                content: *content,
            },
            Found::Link(target) => TreeNode::Link { target },
            Found::Directory { tree: Some(tree), .. } => TreeNode::Directory { tree: *tree },
            _ => continue,
        };
        // Names and targets were checked; only the size of the whole is left.
        builder.push(&Entry { name: names.get(index).0, node }).ok()?;
    }
    Some(builder.finish())
}
