//! A disk that counts what the store asks of it, in front of the real one.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};

/// What was asked for so far.
#[derive(Debug, Default)]
struct Counters {
    syncs: AtomicU64,
    written: AtomicU64,
}

/// A count at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Syncs of files and of directories.
    pub(crate) syncs: u64,
    /// Bytes written to files.
    pub(crate) written: u64,
}

/// The real disk, counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountingDisk(Arc<Counters>);

impl CountingDisk {
    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> Counts {
        let Counters { syncs, written } = &*self.0;
        Counts { syncs: syncs.load(Ordering::Relaxed), written: written.load(Ordering::Relaxed) }
    }
}

impl Disk for CountingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path, mode)?;
        Ok(Box::new(CountingFile { file, counters: self.0.clone() }))
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
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        RealDisk.sync_dir(path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        RealDisk.set_mode(path, mode)
    }
}

struct CountingFile {
    file: Box<dyn DiskFile>,
    counters: Arc<Counters>,
}

impl DiskFile for CountingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let written = self.file.write_at(buf, offset)?;
        self.counters.written.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_syncs_are_counted_and_still_happen() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = CountingDisk::default();
        let file = disk.open(&dir.path().join("a"), OpenMode::Create).expect("a file");
        file.write_at(b"four", 0).expect("room");
        file.sync().expect("a disk");
        disk.sync_dir(dir.path()).expect("a disk");
        assert_eq!(disk.counts(), Counts { syncs: 2, written: 4 });
        assert_eq!(std::fs::read(dir.path().join("a")).expect("it is there"), b"four");
    }
}
