//! The operating system's files, never synced: a home that is made to be tried out need not survive a power
//! cut, and syncing ten thousand logs one by one takes most of the time of making them.

use std::io;
use std::path::Path;

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};

/// A disk on which every sync succeeds at once.
pub struct Unsynced;

impl Disk for Unsynced {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(RealDisk.open(path, mode)?)))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        RealDisk.stat(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        RealDisk.list(dir)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        RealDisk.set_mode(path, mode)
    }
}

struct UnsyncedFile(Box<dyn DiskFile>);

impl DiskFile for UnsyncedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn stat(&self) -> io::Result<Stat> {
        self.0.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}
