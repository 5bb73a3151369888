//! Lock files: one holder at a time, whichever process it is, for as long as it lives. The system lets go of one when its holder dies,
//! so a file that stays behind means nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rekindle_store::disk::{DiskFile, OpenMode, SharedDisk, if_exists, write_all_at};

/// A lock that nobody else has for as long as this lives; its file goes with it.
pub(crate) struct LockFile {
    disk: SharedDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl LockFile {
    /// Takes the lock at a path; none if somebody else has it.
    pub(crate) fn take(disk: &SharedDisk, path: &Path) -> io::Result<Option<LockFile>> {
        loop {
            let file = disk.open(path, OpenMode::Create)?;
            if !file.try_lock()? {
                return Ok(None);
            }
            // Whoever had it may have removed it between the two: then it guards nothing any more.
            let lock = LockFile { disk: disk.clone(), path: path.to_owned(), file };
            if lock.is_in_place()? {
                return Ok(Some(lock));
            }
        }
    }

    /// Returns an input for a program that works for its holder: the lock is held until that has ended too, whoever started it.
    pub(crate) fn share(&self) -> io::Result<Stdio> {
        self.file.share().map(Stdio::from)
    }

    /// Writes what others are to read in it.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        write_all_at(&*self.file, bytes, 0)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let there = if_exists(self.disk.stat(&self.path))?;
        Ok(there.map(|there| there.identity) == Some(self.file.stat()?.identity))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // While it is still ours. One that stays is taken by whoever comes next.
        if self.is_in_place().unwrap_or(false) {
            let _ = self.disk.remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    use rekindle_store::disk::RealDisk;

    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_nothing_stays_behind() {
        let place = tempfile::tempdir().expect("a directory");
        let (disk, path): (SharedDisk, _) = (Arc::new(RealDisk), place.path().join("x.lock"));
        let take = || LockFile::take(&disk, &path).expect("usable");
        let (inside, taken, begin) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    begin.wait();
                    for _ in 0..500 {
                        if let Some(lock) = take() {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "alone");
                            taken.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0);
        assert!(!path.exists());
        // What a dead process left is a file like any other.
        std::fs::write(&path, "").expect("written");
        let lock = take().expect("nobody has it");
        assert!(take().is_none());
        drop(lock);
        assert!(!path.exists());
    }
}
