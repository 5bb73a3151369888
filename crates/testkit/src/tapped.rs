//! The operating system's files with a tap on what is written and synced; everything else is passed on as it is.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is opened to be read, or read.
    Read,
    /// It is opened to be written, written or synced.
    Write,
}

/// What a tapped disk does on the way.
pub trait Tap: Clone + Send + Sync + 'static {
    /// Is told of what is about to be done to a file.
    fn before(&self, _access: Access, _path: &Path) {}

    /// Is told that bytes were written to a file.
    fn written(&self, _bytes: usize) {}

    /// Syncs a file or a directory, as `sync` would, or not.
    fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        sync()
    }
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
        self.0.before(if mode == OpenMode::Read { Access::Read } else { Access::Write }, path);
        let file = RealDisk.open(path, mode)?;
        Ok(Box::new(TappedFile { file, path: path.to_owned(), tap: self.0.clone() }))
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
    path: PathBuf,
    tap: T,
}

impl<T: Tap> DiskFile for TappedFile<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.tap.before(Access::Read, &self.path);
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.tap.before(Access::Write, &self.path);
        self.file.write_at(buf, offset).inspect(|bytes| self.tap.written(*bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.tap.before(Access::Write, &self.path);
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.tap.before(Access::Write, &self.path);
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.tap.before(Access::Write, &self.path);
        self.tap.sync(|| self.file.sync())
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}
