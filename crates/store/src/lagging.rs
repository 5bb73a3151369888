//! Logs that are behind: their file could not be written when a record was committed. What the file lacks is kept in
//! memory, and laid over the file for everyone who reads: what was acknowledged is seen at once (I1, I12). The committer adds
//! to it, and takes it away once the file has everything.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::StreamId;

use crate::disk::{Disk, DiskFile, Entry, EntryKind, OpenMode, SharedDisk, Stat};
use crate::offline::Patched;

/// How a log fell behind, which decides how it is brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It could not be opened or written: what stands before that place is right.
    Write,
    /// It could not be made durable, or its name leads elsewhere: nothing since the last checkpoint can be relied on.
    Sync,
    /// It could not be completed when the home was opened.
    Recovery,
}

/// What a file lacks of a log.
#[derive(Clone)]
pub(crate) struct Lag {
    /// Where the log is.
    pub(crate) path: PathBuf,
    /// The file is right up to here.
    pub(crate) keep: u64,
    /// What belongs behind that. As large as what the write-ahead log has of the stream, which no checkpoint drops meanwhile.
    pub(crate) lines: Arc<Vec<u8>>,
    /// The file as it was opened, whatever its name leads to; none if it was not.
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    pub(crate) cause: Cause,
    /// What went wrong last, for people.
    pub(crate) why: String,
}

/// All logs that are behind.
#[derive(Default)]
pub(crate) struct Behind(Mutex<Lags>);

#[derive(Default)]
struct Lags {
    streams: BTreeMap<StreamId, Lag>,
    /// The same by the paths of their logs.
    paths: HashMap<PathBuf, StreamId>,
}

impl Behind {
    fn lock(&self) -> MutexGuard<'_, Lags> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A log falls behind; one that is behind stays as it is.
    pub(crate) fn fall(&self, stream: StreamId, lag: Lag) {
        let mut all = self.lock();
        all.paths.insert(lag.path.clone(), stream);
        all.streams.entry(stream).or_insert(lag);
    }

    /// Adds lines to a log that is behind; tells whether it is.
    pub(crate) fn extend(&self, stream: StreamId, lines: &[u8]) -> bool {
        let mut all = self.lock();
        let lag = all.streams.get_mut(&stream);
        lag.map(|lag| Arc::make_mut(&mut lag.lines).extend_from_slice(lines)).is_some()
    }

    /// Says what went wrong with bringing a log up to date.
    pub(crate) fn blame(&self, stream: StreamId, why: &io::Error) {
        if let Some(lag) = self.lock().streams.get_mut(&stream) {
            lag.why = why.to_string();
        }
    }

    /// A log has everything, or is gone.
    pub(crate) fn forget(&self, stream: StreamId) {
        let mut all = self.lock();
        if let Some(lag) = all.streams.remove(&stream) {
            all.paths.remove(&lag.path);
        }
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<Lag> {
        self.lock().streams.get(&stream).cloned()
    }

    /// Returns what the file at a path lacks, if it is a log that is behind.
    fn at(&self, path: &Path) -> Option<Lag> {
        let all = self.lock();
        all.streams.get(all.paths.get(path)?).cloned()
    }

    /// Returns the names of the logs in a directory that are behind.
    fn names_in(&self, dir: &Path) -> Vec<String> {
        let all = self.lock();
        let paths = all.paths.keys().filter(|path| path.parent() == Some(dir));
        paths.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn has(&self, stream: StreamId) -> bool {
        self.lock().streams.contains_key(&stream)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().streams.len()
    }

    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.lock().streams.keys().copied().collect()
    }
}

/// A disk that shows logs that are behind as they are committed. What is written goes to the disk itself.
pub(crate) struct Complete {
    pub(crate) disk: SharedDisk,
    pub(crate) behind: Arc<Behind>,
}

impl Disk for Complete {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let Some(lag) = (mode == OpenMode::Read).then(|| self.behind.at(path)).flatten() else {
            return self.disk.open(path, mode);
        };
        let file = match lag.file {
            // Nothing of it is read: it may not even be there.
            _ if lag.keep == 0 => None,
            Some(file) => Some(file),
            None => Some(self.disk.open(path, mode)?.into()),
        };
        Ok(Box::new(Patched { file, keep: lag.keep, lines: lag.lines }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        match self.behind.at(path) {
            Some(_) => self.open(path, OpenMode::Read)?.stat(),
            None => self.disk.stat(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = self.disk.list(dir)?;
        for name in self.behind.names_in(dir) {
            if !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry { name, kind: EntryKind::File });
            }
        }
        Ok(entries)
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
