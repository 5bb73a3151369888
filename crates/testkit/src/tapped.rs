//! The operating system's files with a tap on what is written and synced; everything else is passed on as it is.

use std::io;
use std::path::Path;

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};

/// What a tapped disk does on the way.
pub trait Tap: Clone + Send + Sync + 'static {
    /// Is told that bytes were written to a file.
    fn written(&self, _bytes: usize) {}

    /// Syncs a file or a directory, as `sync` would, or not.
    fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()>;
}

/// Every sync succeeds at once: a home that is made to be tried out need not survive a power cut, and syncing ten thousand
/// logs one by one takes most of the time of making them.
#[derive(Debug, Clone, Copy)]
pub struct Unsynced;

impl Tap for Unsynced {
    fn sync(&self, _: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        Ok(())
    }
}

/// The real disk behind a tap.
#[derive(Debug, Clone, Default)]
pub struct Tapped<T>(pub T);

impl<T: Tap> Disk for Tapped<T> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(TappedFile { file: RealDisk.open(path, mode)?, tap: self.0.clone() }))
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

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync(|| RealDisk.sync_dir(path))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        RealDisk.set_mode(path, mode)
    }
}

struct TappedFile<T> {
    file: Box<dyn DiskFile>,
    tap: T,
}

impl<T: Tap> DiskFile for TappedFile<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset).inspect(|bytes| self.tap.written(*bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.tap.sync(|| self.file.sync())
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}
