//! The seam between the store and a file system: everything the store does to files goes through [`Disk`].
//!
//! [`RealDisk`] is the operating system. A simulated twin, with separate *live* and *durable* contents and
//! faults drawn from a seed, lives in the test kit. Nothing here decides when to sync: callers do.

mod read_only_file;
mod real;
mod reserved_descriptors;
mod retry;
mod tools;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use read_only_file::ReadOnlyFile;
pub use real::RealDisk;
pub use reserved_descriptors::{check_descriptors, is_out_of_descriptors};
pub use retry::RetryDisk;
pub use tools::{
    copy, if_exists, is_shortage, lock_within, read_all, read_exact_at, read_up_to, refresh, replace,
    write_all_at,
};
pub(crate) use tools::{replace_through, temporary};

/// How [`Disk::open`] treats a path that exists or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Read only; the file must exist.
    Read,
    /// Read and write; the file must exist.
    Write,
    /// Read and write; an existing file is kept as it is, a missing one is made (0600).
    Create,
    /// Read and write; an existing file is an error (`AlreadyExists`).
    CreateNew,
    /// Read and write; an existing file is cut to nothing, a missing one is made (0600).
    Replace,
}

/// What kind of thing a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// Anything else: a link, a socket, a device. The store touches none of them.
    Other,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without its directory. Names that are not UTF-8 are given lossily and are never ours.
    pub name: String,
    /// What it names.
    pub kind: EntryKind,
}

/// Facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub len: u64,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits (`0o777` mask).
    pub mode: u32,
    /// Device and inode: two opens of one path are the same file only if these agree.
    pub identity: (u64, u64),
    /// Last change of content.
    pub modified: SystemTime,
}

/// A file system. Directories are made 0700 and files 0600 whatever the umask.
pub trait Disk: Send + Sync {
    /// Opens a regular file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;
    /// Returns facts about a path; links are not followed.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// Lists a directory in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Makes one directory; its parent must exist. One that exists already is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Moves a file over another, atomically for those who look; durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; durable after [`Disk::sync_dir`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Sets permission bits.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Returns how many files are worth making durable at once: a disk's journal takes several in one go. One where calls
    /// must come in the same order every time.
    fn parallel_syncs(&self) -> usize {
        1
    }
}

/// An open file. All reads and writes name their offset; there is no shared position.
pub trait DiskFile: Send + Sync {
    /// Reads at an offset; fewer bytes than asked for are allowed, 0 is the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at an offset; may write fewer bytes than given. Writing past the end fills with zeros.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts or extends (with zeros) to a length.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves room up to `len` bytes and makes the file that long, zero-filled.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Has what was written behind an offset go to the disk, without waiting for it: a hint, so that many files that are about
    /// to be made durable are written at once. What becomes of it, [`DiskFile::sync`] tells.
    fn begin_write_back(&self, _from: u64) {}
    /// Makes contents and length durable (`fdatasync`). After an error nothing is known of unsynced bytes.
    fn sync(&self) -> io::Result<()>;
    /// Returns facts about the open file, whatever its path names now.
    fn stat(&self) -> io::Result<Stat>;
    /// Returns how long the file was when it was opened: for whoever reads it as it was then, and need not ask again.
    fn len_at_open(&self) -> io::Result<u64> {
        Ok(self.stat()?.len)
    }
    /// Takes the exclusive advisory lock for as long as the file is open; `false` if someone holds it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Returns another handle of the file, for a process that is to hold its lock along with us.
    fn share(&self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A shared disk.
pub type SharedDisk = Arc<dyn Disk>;
