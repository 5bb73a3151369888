//! A disk on which what is done to some files waits at a gate: the machine of somebody whose disk hangs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};

/// What waits at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Opening a file to read it, and reading it.
    Reads,
    /// Writing and syncing it.
    Writes,
}

#[derive(Debug, Default)]
struct State {
    /// What waits: this, of files whose name has this in it.
    closed: Option<(Held, String)>,
    waiting: usize,
}

/// A gate before a disk: open at first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().expect("nobody panics at the gate")
    }

    /// From now on something waits that is done to files whose name has `name` in it.
    pub(crate) fn close(&self, held: Held, name: &str) {
        self.state().closed = Some((held, name.to_owned()));
    }

    /// Lets everybody through.
    pub(crate) fn open(&self) {
        self.state().closed = None;
        self.0.1.notify_all();
    }

    /// Returns something that lets everybody through when it is dropped, however its test ends.
    pub(crate) fn open_at_end(&self) -> impl Drop {
        struct Opened(Gate);
        impl Drop for Opened {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        Opened(self.clone())
    }

    /// Returns how many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting
    }

    fn pass(&self, held: Held, path: &Path) {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let is_closed = |state: &State| {
            state.closed.as_ref().is_some_and(|(what, name)| *what == held && file.contains(name))
        };
        let mut state = self.state();
        if !is_closed(&state) {
            return;
        }
        state.waiting += 1;
        let mut state = self.0.1.wait_while(state, |state| is_closed(state)).expect("nobody panics");
        state.waiting -= 1;
    }
}

/// The real disk behind a gate.
pub(crate) struct GatedDisk(pub(crate) Gate);

impl Disk for GatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        self.0.pass(if mode == OpenMode::Read { Held::Reads } else { Held::Writes }, path);
        let file = RealDisk.open(path, mode)?;
        Ok(Box::new(GatedFile { file, path: path.to_owned(), gate: self.0.clone() }))
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
        RealDisk.sync_dir(path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        RealDisk.set_mode(path, mode)
    }
}

struct GatedFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    gate: Gate,
}

impl DiskFile for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(Held::Reads, &self.path);
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(Held::Writes, &self.path);
        self.file.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.pass(Held::Writes, &self.path);
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.gate.pass(Held::Writes, &self.path);
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass(Held::Writes, &self.path);
        self.file.sync()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}
