//! A simulated disk with a gate: calls of one kind on one file wait in front of it until it is opened, and all others pass.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, Stat};

use crate::sim::{OpKind, SimDisk};

/// How long anybody waits for something that must happen.
pub const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct State {
    /// What has to wait: calls of a kind, on paths that contain a text, at this offset or behind it.
    closed: Option<(OpKind, String, u64)>,
    waiting: usize,
    /// How many bytes were read of each file.
    read: HashMap<PathBuf, u64>,
}

/// The gate.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the gate for calls of a kind on paths that contain `part`, until what is returned is dropped.
    pub fn close(&self, kind: OpKind, part: &str) -> Closed<'_> {
        self.close_behind(kind, part, 0)
    }

    /// Closes the gate for reads or writes at an offset or behind it, or for whatever else has none if that is 0.
    pub fn close_behind(&self, kind: OpKind, part: &str, offset: u64) -> Closed<'_> {
        self.lock().closed = Some((kind, part.to_owned(), offset));
        Closed(self)
    }

    /// Returns how many bytes were read of files whose path contains `part`.
    pub fn bytes_read(&self, part: &str) -> u64 {
        let state = self.lock();
        let read = state.read.iter().filter(|(path, _)| path.to_string_lossy().contains(part));
        read.map(|(_, bytes)| bytes).sum()
    }

    /// Waits until some calls are waiting in front of the gate.
    pub fn await_waiting(&self, count: usize) {
        let few = |state: &mut State| state.waiting < count;
        let waited = self.changed.wait_timeout_while(self.lock(), DEADLINE, few);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.waiting >= count, "{} of {count} calls came to the gate", state.waiting);
    }

    fn pass(&self, kind: OpKind, path: &Path, at: u64) {
        let held = |state: &mut State| {
            let closed = state.closed.as_ref();
            closed.is_some_and(|(held, part, from)| {
                *held == kind && at >= *from && path.to_string_lossy().contains(part)
            })
        };
        let mut state = self.lock();
        if held(&mut state) {
            state.waiting += 1;
            self.changed.notify_all();
            let waited = self.changed.wait_while(state, held);
            waited.unwrap_or_else(PoisonError::into_inner).waiting -= 1;
        }
    }
}

/// A closed gate, which opens when this is dropped: also when a test fails.
pub struct Closed<'a>(&'a Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = None;
        self.0.changed.notify_all();
    }
}

/// A simulated disk behind a gate.
#[derive(Clone)]
pub struct GatedDisk {
    /// The disk.
    pub disk: SimDisk,
    /// The gate.
    pub gate: Arc<Gate>,
}

impl GatedDisk {
    /// Makes an empty disk whose gate is open.
    pub fn new(seed: u64) -> GatedDisk {
        GatedDisk { disk: SimDisk::new(seed), gate: Arc::default() }
    }
}

impl Disk for GatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let (path, gate) = (path.to_owned(), self.gate.clone());
        Ok(Box::new(GatedFile { file: self.disk.open(&path, mode)?, path, gate }))
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.disk.stat(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.disk.list(dir)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.disk.set_mode(path, mode)
    }
}

struct GatedFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl DiskFile for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(OpKind::Read, &self.path, offset);
        let read = self.file.read_at(buf, offset)?;
        *self.gate.lock().read.entry(self.path.clone()).or_default() += read as u64;
        Ok(read)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(OpKind::Write, &self.path, offset);
        self.file.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.gate.pass(OpKind::Sync, &self.path, 0);
        self.file.sync()
    }
    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}
