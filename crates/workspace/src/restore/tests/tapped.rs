//! A root that calls a test before each operation that changes something: to count, to fail it, or to interfere.

use std::cell::Cell;
use std::io::{self, Read, Write};

use super::super::root::{Root, Seen};
use crate::tree::FileMode;

/// What a test does before an operation: its name and path. An error is what the operation ends with.
pub(super) type Tap<'a> = dyn Fn(&'static str, &[u8]) -> io::Result<()> + 'a;

/// A root with a tap. It syncs nothing: that would wait for everything that others write on this machine.
pub(super) struct Tapped<'a> {
    inner: &'a dyn Root,
    tap: &'a Tap<'a>,
    pub(super) operations: Cell<usize>,
}

impl<'a> Tapped<'a> {
    pub(super) fn new(inner: &'a dyn Root, tap: &'a Tap<'a>) -> Tapped<'a> {
        Tapped { inner, tap, operations: Cell::new(0) }
    }

    fn tap(&self, operation: &'static str, path: &[u8]) -> io::Result<()> {
        self.operations.set(self.operations.get() + 1);
        (self.tap)(operation, path)
    }
}

impl Root for Tapped<'_> {
    fn stat(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        self.inner.stat(path)
    }

    fn list(&self, directory: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.inner.list(directory)
    }

    fn open(&self, path: &[u8]) -> io::Result<(Box<dyn Read + '_>, Seen)> {
        self.inner.open(path)
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        self.inner.read_link(path)
    }

    fn write_file(
        &self,
        path: &[u8],
        mode: FileMode,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.tap("write_file", path)?;
        self.inner.write_file(path, mode, fill)
    }

    fn make_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        self.tap("make_link", path)?;
        self.inner.make_link(path, target)
    }

    fn make_dir(&self, path: &[u8]) -> io::Result<()> {
        self.tap("make_dir", path)?;
        self.inner.make_dir(path)
    }

    fn set_mode(&self, path: &[u8], mode: FileMode) -> io::Result<()> {
        self.tap("set_mode", path)?;
        self.inner.set_mode(path, mode)
    }

    fn rename(&self, directory: &[u8], from: &[u8], to: &[u8]) -> io::Result<()> {
        self.tap("rename", directory)?;
        self.inner.rename(directory, from, to)
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        self.tap("remove_file", path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &[u8]) -> io::Result<()> {
        self.tap("remove_dir", path)?;
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, directory: &[u8]) -> io::Result<()> {
        self.tap("sync_dir", directory)?;
        self.inner.stat(directory).map(drop)
    }

    fn sync_file_systems(&self, directories: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
        self.tap("sync_file_systems", b"")?;
        directories.for_each(drop);
        Ok(())
    }
}
