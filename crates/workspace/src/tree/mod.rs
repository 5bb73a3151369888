//! Tree objects: one for each directory, in canonical bytes, named by their hash.
//! `codec` has the bytes, `name` what an entry may be called, `snap` the short names for people, `walk` a whole tree entry by entry.

mod codec;
mod name;
mod snap;
mod walk;

pub use codec::{Entries, MAGIC, Tree, TreeBuilder, TreeError, Wrong};
pub use name::{NameError, check_name};
pub use snap::{NotResolved, Snap, SnapError, short_name};
pub use walk::{LimitReached, Limits, OwnedNode, TreeWalk, WalkError, WalkedEntry, load};

use rekindle_domain::blob_id::BlobId;

/// Longest name of an entry in bytes. Linux allows 255; file systems that count 255 characters get by with this.
pub const MAX_NAME_BYTES: usize = 1024;

/// Longest target of a link in bytes: `PATH_MAX` on Linux.
pub const MAX_TARGET_BYTES: usize = 4096;

/// Largest size of a file: what a signed 64-bit offset can address.
pub const MAX_FILE_SIZE: u64 = i64::MAX as u64;

/// Largest tree object in bytes: room for a million files with names of usual length in one directory.
pub const MAX_TREE_BYTES: u64 = 64 << 20;

/// Deepest directory. Paths are longer than systems accept well before, and whoever recurses stays far from the end of a stack.
pub const MAX_DEPTH: usize = 512;

/// What an entry of a directory is called and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name, without any path; bytes, because that is what file systems keep.
    pub name: &'a [u8],
    /// What it is.
    pub node: Node<'a>,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node<'a> {
    /// A regular file.
    File {
        /// Who may use it, and how.
        mode: FileMode,
        /// Its length in bytes.
        size: u64,
        /// The name of its content.
        content: BlobId,
    },
    /// A symbolic link.
    Link {
        /// Where it points to, as it is written in the link.
        target: &'a [u8],
    },
    /// A directory.
    Directory {
        /// The name of its tree object.
        tree: BlobId,
    },
}

/// The permissions of a file as far as they count: whether it can be executed, and whether it is its owner's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileMode {
    /// `f`: 0644.
    Plain,
    /// `x`: 0755.
    Executable,
    /// `p`: 0600, no bit for group or others.
    Private,
    /// `q`: 0700, no bit for group or others.
    PrivateExecutable,
}

impl FileMode {
    /// Returns what counts of the permission bits of a file.
    pub fn from_permissions(bits: u32) -> FileMode {
        match (bits & 0o077 == 0, bits & 0o100 != 0) {
            (false, false) => FileMode::Plain,
            (false, true) => FileMode::Executable,
            (true, false) => FileMode::Private,
            (true, true) => FileMode::PrivateExecutable,
        }
    }

    /// Returns the permission bits of a file that is written anew, before any umask.
    pub fn permissions(self) -> u32 {
        match self {
            FileMode::Plain => 0o644,
            FileMode::Executable => 0o755,
            FileMode::Private => 0o600,
            FileMode::PrivateExecutable => 0o700,
        }
    }

    /// Returns the letter of the mode in tree objects.
    pub fn letter(self) -> u8 {
        match self {
            FileMode::Plain => b'f',
            FileMode::Executable => b'x',
            FileMode::Private => b'p',
            FileMode::PrivateExecutable => b'q',
        }
    }
}

impl Node<'_> {
    /// Returns the letter of the entry's type in tree objects.
    pub fn letter(&self) -> u8 {
        match self {
            Node::File { mode, .. } => mode.letter(),
            Node::Link { .. } => b'l',
            Node::Directory { .. } => b'd',
        }
    }
}

#[cfg(test)]
mod tests;
