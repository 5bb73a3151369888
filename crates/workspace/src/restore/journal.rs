//! The journal of a restore: which tree there was, and which one is wanted. It is there from before the first change until
//! everything is durable, so that a restore that was cut short is known as such and keeps its way back.

use std::io;

use rekindle_domain::blob_id::BlobId;
use serde::{Deserialize, Serialize};

/// How many abandoned trees are remembered: nobody changes their mind more often than that between interruptions.
const MAX_ABANDONED: usize = 16;

/// What is kept while a restore is at work: `workspaces/restoring/<root hash>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The way back: the tree of before the restore, with everything that is overwritten or removed.
    pub from: BlobId,
    /// The tree that is wanted.
    pub to: BlobId,
    /// Trees that earlier attempts were cut short on before another one was wanted; mostly there are none.
    ///
    /// What they left is neither somebody's work nor part of the way back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<BlobId>,
}

impl Journal {
    /// Returns every tree that something on disk may come from.
    pub(super) fn trees(&self) -> impl Iterator<Item = BlobId> {
        [self.from, self.to].into_iter().chain(self.abandoned.iter().copied())
    }

    /// Returns the journal of a restore that follows an interrupted one, if there was any.
    pub(super) fn after(earlier: Option<&Journal>, from: BlobId, to: BlobId) -> Journal {
        let mut abandoned: Vec<BlobId> = Vec::new();
        if let Some(earlier) = earlier {
            abandoned.extend(earlier.abandoned.iter().chain([&earlier.to]).filter(|tree| **tree != to));
            abandoned.dedup();
            abandoned.drain(..abandoned.len().saturating_sub(MAX_ABANDONED));
        }
        Journal { from, to, abandoned }
    }
}

/// Where the journal of one root is kept. The store's business, like objects.
pub trait JournalFile {
    /// Returns the journal that an interrupted restore left.
    fn read(&self) -> io::Result<Option<Journal>>;

    /// Makes durable, in this order: every object that the sink was given, and the journal, which replaces an earlier one whole.
    ///
    /// The way back must not be named before it is there.
    fn write(&self, journal: &Journal) -> io::Result<()>;

    /// Removes the journal, durably.
    fn remove(&self) -> io::Result<()>;
}
