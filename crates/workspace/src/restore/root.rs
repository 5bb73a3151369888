//! What a restore does to files, below one directory: the root. No call goes through a symbolic link or out of the root,
//! whatever somebody puts there meanwhile; every call that changes something is a point where a simulated crash can strike.

use std::io::{self, Read, Write};

use crate::tree::FileMode;

/// What is at a path, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What kind of thing it is.
    pub kind: SeenKind,
    /// Permission bits.
    pub permissions: u32,
    /// Length in bytes.
    pub size: u64,
    /// Number of the inode.
    pub inode: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of content or properties, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// It has more than one name: removing another one changes its last time.
    pub has_other_names: bool,
}

impl Seen {
    /// Returns true if what was seen is still the same, given what is seen now.
    ///
    /// Removing another name of a file changes the file's last time; its content has a time of its own.
    pub(super) fn is_still(&self, now: &Seen) -> bool {
        let ctime_ns = if self.has_other_names { self.ctime_ns } else { now.ctime_ns };
        *self == Seen { ctime_ns, has_other_names: self.has_other_names, ..*now }
    }
}

/// What kind of thing is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
    /// A socket, a pipe, a device.
    Special,
}

/// A directory and the ways in which a restore looks at it and changes it.
///
/// Paths are names from the root with `/` between them, none of them `.` or `..`; the root itself is the empty path.
/// A path whose directory is a link, or leads through one, is an error, never followed.
pub trait Root {
    /// Returns what is at a path, itself and not what it points to; nothing if there is nothing.
    fn stat(&self, path: &[u8]) -> io::Result<Option<Seen>>;

    /// Returns the names in a directory, in no order.
    fn list(&self, directory: &[u8]) -> io::Result<Vec<Vec<u8>>>;

    /// Opens a regular file for reading and returns what was opened with it; anything else is an error.
    fn open(&self, path: &[u8]) -> io::Result<(Box<dyn Read + '_>, Seen)>;

    /// Returns where a link points to.
    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>>;

    /// Makes a file that was not there and has `fill` write its content; its permissions are set at the end, whatever the umask.
    ///
    /// After an error there may be a file with a part of the content.
    fn write_file(
        &self,
        path: &[u8],
        mode: FileMode,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Makes a link that was not there.
    fn make_link(&self, path: &[u8], target: &[u8]) -> io::Result<()>;

    /// Makes a directory that was not there.
    fn make_dir(&self, path: &[u8]) -> io::Result<()>;

    /// Sets the permissions of a regular file.
    fn set_mode(&self, path: &[u8], mode: FileMode) -> io::Result<()>;

    /// Renames within a directory; a file or link that has the name is replaced.
    fn rename(&self, directory: &[u8], from: &[u8], to: &[u8]) -> io::Result<()>;

    /// Removes a file or link.
    fn remove_file(&self, path: &[u8]) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &[u8]) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, directory: &[u8]) -> io::Result<()>;

    /// Makes everything durable on the file systems that these directories and the root are on.
    fn sync_file_systems(&self, directories: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()>;
}
