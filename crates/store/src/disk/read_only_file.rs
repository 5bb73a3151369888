//! Files that are only read: whatever would change one is refused.

use std::io;

use super::{DiskFile, Stat};

/// A file that is only read.
pub(crate) trait ReadOnlyFile: Send + Sync {
    /// Why nobody may change it.
    const REASON: &str;

    /// Reads at an offset, as [`DiskFile::read_at`] does.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Returns facts about it, as [`DiskFile::stat`] does.
    fn stat(&self) -> io::Result<Stat>;
}

impl<F: ReadOnlyFile> DiskFile for F {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadOnlyFile::read_at(self, buf, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(refused::<F>())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(refused::<F>())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(refused::<F>())
    }

    fn sync(&self) -> io::Result<()> {
        Err(refused::<F>())
    }

    fn stat(&self) -> io::Result<Stat> {
        ReadOnlyFile::stat(self)
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(refused::<F>())
    }
}

fn refused<F: ReadOnlyFile>() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, F::REASON)
}
