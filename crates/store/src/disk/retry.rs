//! A disk that retries calls interrupted by a signal, so that nobody above has to think of it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{Disk, DiskFile, Entry, OpenMode, SharedDisk, Stat};

/// Bounds the repetition: a call that is interrupted this often is a fault of its own.
const MOST_REPEATS: u32 = 100;

fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MOST_REPEATS {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
    call()
}

/// A disk that makes calls again that fail with `Interrupted`.
#[derive(Clone)]
pub struct RetryDisk(pub SharedDisk);

impl Disk for RetryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RetryFile(again(|| self.0.open(path, mode))?)))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        again(|| self.0.stat(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        again(|| self.0.list(dir))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        again(|| self.0.create_dir(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        again(|| self.0.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        again(|| self.0.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        again(|| self.0.remove_dir(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        again(|| self.0.sync_dir(path))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        again(|| self.0.set_mode(path, mode))
    }

    fn parallel_syncs(&self) -> usize {
        self.0.parallel_syncs()
    }
}

struct RetryFile(Box<dyn DiskFile>);

impl DiskFile for RetryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        again(|| self.0.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        again(|| self.0.write_at(buf, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        again(|| self.0.set_len(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        again(|| self.0.allocate(len))
    }

    fn begin_write_back(&self, from: u64) {
        self.0.begin_write_back(from);
    }

    fn sync(&self) -> io::Result<()> {
        // An interrupted sync has not failed: nothing was marked clean.
        again(|| self.0.sync())
    }

    fn stat(&self) -> io::Result<Stat> {
        again(|| self.0.stat())
    }

    fn len_at_open(&self) -> io::Result<u64> {
        again(|| self.0.len_at_open())
    }

    fn try_lock(&self) -> io::Result<bool> {
        again(|| self.0.try_lock())
    }

    fn share(&self) -> io::Result<OwnedFd> {
        again(|| self.0.share())
    }
}
