//! What a restore says: what it did, what it left alone and why, the way back, and why it was refused or cut short.

use std::io;

use rekindle_domain::blob_id::BlobId;

use super::paths::Shown;
use crate::tree::WalkError;

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The way back: restoring this tree brings back everything that was overwritten or removed, ignored or not.
    ///
    /// After an interruption it is the tree of before the first attempt.
    pub undo: BlobId,
    /// The tree that was wanted.
    pub tree: BlobId,
    /// What was changed, in the order of the changes.
    pub done: Vec<Done>,
    /// What is not as the tree has it, in the order of paths.
    pub left: Vec<Left>,
    /// An earlier attempt had been interrupted and was finished.
    pub resumed: bool,
    /// The HEAD of git is not where it was when the wanted tree was captured. A restore never moves it.
    pub head_moved: bool,
}

impl Restored {
    /// Returns true if the directory is now as the tree has it, apart from what neither capture looked at.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// One thing that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The path from the root.
    pub path: Vec<u8>,
    /// What happened to it.
    pub what: DoneWhat,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneWhat {
    /// A file was written, or replaced.
    FileWritten,
    /// A link was made, or replaced.
    LinkMade,
    /// A directory was made.
    DirectoryMade,
    /// The permissions of a file were changed.
    ModeChanged,
    /// A file or link was removed.
    Removed,
    /// A directory was removed, empty by then.
    DirectoryRemoved,
}

/// One path that was left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", Shown(.path))]
pub struct Left {
    /// The path from the root. What is below a directory is left alone with it, unless it is told otherwise.
    pub path: Vec<u8>,
    /// Why.
    pub why: LeftWhy,
}

/// Why a path was left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeftWhy {
    /// It is not in the wanted tree, whose rules ignore it.
    #[error("not removed, because the rules of the snapshot ignore it")]
    Ignored,
    /// It is not in the wanted tree, whose capture skipped it.
    #[error("not removed, because the snapshot skipped it")]
    Skipped,
    /// It appeared after an earlier attempt was interrupted; neither tree knows it.
    #[error("not removed, because it appeared after the restore began")]
    Appeared,
    /// The capture of the present state skipped what is there now.
    #[error("not replaced, because the current file could not be captured")]
    SkippedNow,
    /// A directory has something in it that is in no tree: ignored, skipped, or `.git`.
    #[error("the directory has files in it that are in no snapshot")]
    UnknownFiles,
    /// A socket, a pipe or a device is in the way.
    #[error("a socket, pipe or device is in the way")]
    Special,
    /// It changed while the restore was looking at it or at work.
    #[error("another program changed it during the restore")]
    Changed,
    /// What is there could not be read, so that there would be no way back.
    #[error("the current file cannot be captured: {0}")]
    NotCaptured(String),
    /// The system refused.
    #[error("the system refused: {0}")]
    Refused(String),
}

/// Why a restore did not happen, or did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// One of the trees cannot be read, is damaged, or is too large. Nothing was changed.
    #[error("the snapshot cannot be restored, nothing was changed")]
    Tree(#[from] WalkError),
    /// The file system takes two names of the tree for the same one. Nothing was changed.
    #[error(
        "the file system takes `{}` and `{}` for the same name; restore to a file system that tells them apart. Nothing was changed",
        Shown(.first), Shown(.second)
    )]
    NameCollision {
        /// One path.
        first: Vec<u8>,
        /// The other.
        second: Vec<u8>,
    },
    /// The content of a file is missing, or is not what the tree says. Nothing was changed.
    #[error("the content of `{}` ({id}) {problem}; nothing was changed", Shown(.path))]
    Content {
        /// Whose content.
        path: Vec<u8>,
        /// The name of the content.
        id: BlobId,
        /// What is wrong with it.
        #[source]
        problem: ContentProblem,
    },
    /// The store could not keep the way back. Nothing was changed.
    #[error("the current content of `{}` could not be kept for undoing the restore; nothing was changed", Shown(.path))]
    Undo {
        /// What was to be kept.
        path: Vec<u8>,
        /// Why it could not be.
        #[source]
        source: io::Error,
    },
    /// The journal could not be read, written or removed.
    #[error("the journal of the restore could not be {doing}")]
    Journal {
        /// What was done to it.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The disk failed before anything was changed: no space, an I/O error.
    #[error("cannot prepare `{}`; nothing was changed", Shown(.path))]
    Prepare {
        /// What was to be prepared.
        path: Vec<u8>,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The disk failed half-way. The journal says so; restoring the same tree again finishes it.
    #[error(
        "the restore stopped half-way at `{}`; restore again to finish it, or restore {undo} to go back",
        Shown(.path)
    )]
    Unfinished {
        /// What was being done.
        path: Vec<u8>,
        /// The way back.
        undo: BlobId,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// What is wrong with the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentProblem {
    /// It is not there, or cannot be read.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// Its length or its bytes are not those that were named.
    #[error("is damaged: its bytes do not match the snapshot")]
    Damaged,
}
