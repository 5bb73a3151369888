//! A disk that counts what the store asks of it, in front of the real one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_testkit::tapped::{Tap, Tapped};

/// A count at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Syncs of files and of directories.
    pub(crate) syncs: u64,
    /// Bytes written to files.
    pub(crate) written: u64,
}

/// What was asked for so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    syncs: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

/// The real disk, counted.
pub(crate) type CountingDisk = Tapped<Counters>;

impl Counters {
    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> Counts {
        let Counters { syncs, written } = self;
        Counts { syncs: syncs.load(Ordering::Relaxed), written: written.load(Ordering::Relaxed) }
    }
}

impl Tap for Counters {
    fn written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        sync()
    }
}

#[cfg(test)]
mod tests {
    use rekindle_store::disk::{Disk, OpenMode};

    use super::*;

    #[test]
    fn writes_and_syncs_are_counted_and_still_happen() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = CountingDisk::default();
        let file = disk.open(&dir.path().join("a"), OpenMode::Create).expect("a file");
        file.write_at(b"four", 0).expect("room");
        file.sync().expect("a disk");
        disk.sync_dir(dir.path()).expect("a disk");
        assert_eq!(disk.0.counts(), Counts { syncs: 2, written: 4 });
        assert_eq!(std::fs::read(dir.path().join("a")).expect("it is there"), b"four");
    }
}
