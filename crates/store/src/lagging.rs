//! Lagging logs: their file could not be written when a record was committed. What the file lacks is kept in
//! memory, and laid over the file for everyone who reads: what was acknowledged is seen at once (I1, I12). The committer adds
//! to it, and takes it away once the file has everything. Whoever looks at a home without owning it sees the same of the logs
//! that the next owner would complete.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::StreamId;

use crate::disk::{Disk, DiskFile, Entry, EntryKind, OpenMode, ReadOnlyFile, SharedDisk, Stat};
use crate::layout::Layout;
use crate::unwritten_logs::UnwrittenLogs;

/// The cause of a lag, which decides how it is brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It could not be opened or written: what stands before that place is right.
    Write,
    /// It could not be made durable, or its name leads elsewhere: nothing since the last checkpoint can be relied on.
    Sync,
    /// It could not be completed when the home was opened.
    Recovery,
}

/// A lag: what a file lacks of a log.
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

/// All lagging logs, with what each lacks.
#[derive(Default)]
pub(crate) struct LaggingLogs(Mutex<Lags>);

/// Lags by stream, and streams by path.
#[derive(Default)]
struct Lags {
    streams: BTreeMap<StreamId, Lag>,
    /// The streams by the paths of their logs.
    paths: HashMap<PathBuf, StreamId>,
}

impl LaggingLogs {
    fn lock(&self) -> MutexGuard<'_, Lags> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a log that lags; one that is there already stays as it is, but what could not be made durable is relied on no more.
    pub(crate) fn add(&self, stream: StreamId, lag: Lag) {
        let mut all = self.lock();
        all.paths.insert(lag.path.clone(), stream);
        let (cause, why) = (lag.cause, lag.why.clone());
        let known = all.streams.entry(stream).or_insert(lag);
        if (known.cause, cause) == (Cause::Write, Cause::Sync) {
            (known.cause, known.why) = (cause, why);
        }
    }

    /// Adds lines to what a log lacks, if it lags; tells whether it does.
    pub(crate) fn extend(&self, stream: StreamId, lines: &[u8]) -> bool {
        let mut all = self.lock();
        let lag = all.streams.get_mut(&stream);
        lag.map(|lag| Arc::make_mut(&mut lag.lines).extend_from_slice(lines)).is_some()
    }

    /// Says what went wrong with bringing a log up to date.
    pub(crate) fn set_error(&self, stream: StreamId, why: &io::Error) {
        if let Some(lag) = self.lock().streams.get_mut(&stream) {
            lag.why = why.to_string();
        }
    }

    /// Removes a log that has everything, or is gone.
    pub(crate) fn remove(&self, stream: StreamId) {
        let mut all = self.lock();
        if let Some(lag) = all.streams.remove(&stream) {
            all.paths.remove(&lag.path);
        }
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<Lag> {
        self.lock().streams.get(&stream).cloned()
    }

    /// Returns what the file at a path lacks, if it is a lagging log.
    fn at(&self, path: &Path) -> Option<Lag> {
        let all = self.lock();
        all.streams.get(all.paths.get(path)?).cloned()
    }

    /// Returns the names of the lagging logs in a directory.
    fn names_in(&self, dir: &Path) -> Vec<String> {
        let all = self.lock();
        let paths = all.paths.keys().filter(|path| path.parent() == Some(dir));
        paths.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn contains(&self, stream: StreamId) -> bool {
        self.lock().streams.contains_key(&stream)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().streams.len()
    }

    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.lock().streams.keys().copied().collect()
    }
}

/// A disk that shows logs as they are committed. What is written goes to the disk itself, unless the home is only looked at.
pub(crate) struct LogOverlay {
    pub(crate) disk: SharedDisk,
    pub(crate) layout: Layout,
    pub(crate) lagging: Arc<LaggingLogs>,
    /// The logs that are being written: none where the home is only looked at.
    pub(crate) unwritten: Arc<UnwrittenLogs>,
    pub(crate) read_only: bool,
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the home is only being looked at")
}

impl LogOverlay {
    fn writable(&self) -> io::Result<&dyn Disk> {
        if self.read_only { Err(refused()) } else { Ok(&*self.disk) }
    }
}

impl Disk for LogOverlay {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        if mode != OpenMode::Read {
            return self.writable()?.open(path, mode);
        }
        self.unwritten.wait_for_log(&self.layout, path);
        let Some(lag) = self.lagging.at(path) else { return self.disk.open(path, mode) };
        let file = match lag.file {
            // Nothing of it is read: it may not even be there.
            _ if lag.keep == 0 => None,
            Some(file) => Some(file),
            None => Some(self.disk.open(path, mode)?.into()),
        };
        Ok(Box::new(PatchedFile { file, keep: lag.keep, lines: lag.lines }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.unwritten.wait_for_log(&self.layout, path);
        match self.lagging.at(path) {
            Some(_) => self.open(path, OpenMode::Read)?.stat(),
            None => self.disk.stat(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.unwritten.wait_for_logs_in(&self.layout, dir);
        let mut entries = self.disk.list(dir)?;
        for name in self.lagging.names_in(dir) {
            if !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry { name, kind: EntryKind::File });
            }
        }
        Ok(entries)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.writable()?.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.writable()?.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.writable()?.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.writable()?.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.writable()?.sync_dir(path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.writable()?.set_mode(path, mode)
    }

    fn parallel_syncs(&self) -> usize {
        self.disk.parallel_syncs()
    }
}

/// A log as it is committed: the file's good part, and behind it what the file lacks.
struct PatchedFile {
    file: Option<Arc<dyn DiskFile>>,
    keep: u64,
    lines: Arc<Vec<u8>>,
}

impl ReadOnlyFile for PatchedFile {
    const REASON: &str = "a log is written to by the committer alone";

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(behind) = offset.checked_sub(self.keep) {
            let rest = self.lines.get(behind as usize..).unwrap_or_default();
            let len = rest.len().min(buf.len());
            buf[..len].copy_from_slice(&rest[..len]);
            return Ok(len);
        }
        let len = buf.len().min((self.keep - offset) as usize);
        self.file.as_ref().map_or(Ok(0), |file| file.read_at(&mut buf[..len], offset))
    }

    fn stat(&self) -> io::Result<Stat> {
        let len = self.keep + self.lines.len() as u64;
        let new = Stat {
            len,
            kind: EntryKind::File,
            mode: 0o600,
            identity: (0, 0),
            modified: std::time::SystemTime::UNIX_EPOCH,
        };
        self.file.as_ref().map_or(Ok(new), |file| file.stat().map(|stat| Stat { len, ..stat }))
    }
}
