//! The directory of a restore with crash points: a place before each change at which a test has the process die.

use std::io::{self, Read, Write};

use rekindle_workspace::restore::{DirRoot, Root, Seen};
use rekindle_workspace::tree::FileMode;

use crate::test_knobs::crash_point;

/// The place between any two steps of a restore.
pub(super) const STEP: &str = "restore.step";

/// A directory with a crash point before each change.
pub(super) struct CrashPointRoot(pub(super) DirRoot);

impl Root for CrashPointRoot {
    fn stat(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        self.0.stat(path)
    }

    fn list(&self, directory: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.0.list(directory)
    }

    fn open(&self, path: &[u8]) -> io::Result<(Box<dyn Read + '_>, Seen)> {
        self.0.open(path)
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        self.0.read_link(path)
    }

    fn write_file(
        &self,
        path: &[u8],
        mode: FileMode,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        crash_point(STEP);
        self.0.write_file(path, mode, &mut |out| {
            // There is a file, and nothing in it yet.
            crash_point(STEP);
            fill(out)
        })
    }

    fn make_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.make_link(path, target)
    }

    fn make_dir(&self, path: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.make_dir(path)
    }

    fn set_mode(&self, path: &[u8], mode: FileMode) -> io::Result<()> {
        crash_point(STEP);
        self.0.set_mode(path, mode)
    }

    fn rename(&self, directory: &[u8], from: &[u8], to: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.rename(directory, from, to)
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.remove_file(path)
    }

    fn remove_dir(&self, path: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.remove_dir(path)
    }

    fn sync_dir(&self, directory: &[u8]) -> io::Result<()> {
        crash_point(STEP);
        self.0.sync_dir(directory)
    }

    fn sync_file_systems(&self, directories: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
        crash_point(STEP);
        self.0.sync_file_systems(directories)
    }
}
