//! Session logs that are behind: their file could not be written when a record was committed. What the file lacks is kept in
//! memory, and laid over the file for everyone who reads: what was acknowledged is seen at once (I1, I12). The committer adds
//! to it, and takes it away once the file has everything.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_domain::id::SessionId;

use crate::disk::{Disk, DiskFile, Entry, EntryKind, OpenMode, SharedDisk, Stat};
use crate::layout::{Layout, SessionFile, session_file};
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
    /// The file is right up to here.
    pub(crate) keep: u64,
    /// What belongs behind that. As large as what the write-ahead log has of the session, which no checkpoint drops meanwhile.
    pub(crate) lines: Arc<Vec<u8>>,
    /// The file as it was opened, whatever its name leads to; none if it was not.
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    pub(crate) cause: Cause,
    /// What went wrong last, for people.
    pub(crate) why: String,
}

/// All logs that are behind.
#[derive(Default)]
pub(crate) struct Behind(Mutex<BTreeMap<SessionId, Lag>>);

impl Behind {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Lag>> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A log falls behind; one that is behind stays as it is.
    pub(crate) fn fall(&self, session: SessionId, lag: Lag) {
        self.lock().entry(session).or_insert(lag);
    }

    /// Adds lines to a log that is behind; tells whether it is.
    pub(crate) fn extend(&self, session: SessionId, lines: &[u8]) -> bool {
        let mut all = self.lock();
        let lag = all.get_mut(&session);
        lag.map(|lag| Arc::make_mut(&mut lag.lines).extend_from_slice(lines)).is_some()
    }

    /// Says what went wrong with bringing a log up to date.
    pub(crate) fn blame(&self, session: SessionId, why: &io::Error) {
        if let Some(lag) = self.lock().get_mut(&session) {
            lag.why = why.to_string();
        }
    }

    /// A log has everything, or is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<Lag> {
        self.lock().get(&session).cloned()
    }

    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.lock().contains_key(&session)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.lock().keys().copied().collect()
    }
}

/// A disk that shows logs that are behind as they are committed. What is written goes to the disk itself.
pub(crate) struct Complete {
    pub(crate) disk: SharedDisk,
    pub(crate) layout: Layout,
    pub(crate) behind: Arc<Behind>,
}

impl Complete {
    /// Returns what a file lacks, if it is a log that is behind.
    fn lag(&self, path: &Path) -> Option<Lag> {
        if self.behind.len() == 0 || path.parent()? != self.layout.sessions() {
            return None;
        }
        match session_file(path.file_name()?.to_str()?) {
            SessionFile::Log(session) => self.behind.get(session),
            _ => None,
        }
    }
}

impl Disk for Complete {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let Some(lag) = (mode == OpenMode::Read).then(|| self.lag(path)).flatten() else {
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
        match self.lag(path) {
            Some(_) => self.open(path, OpenMode::Read)?.stat(),
            None => self.disk.stat(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = self.disk.list(dir)?;
        if dir == self.layout.sessions() {
            for session in self.behind.sessions() {
                let path = self.layout.log(session);
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if !entries.iter().any(|entry| entry.name == name) {
                    entries.push(Entry { name: name.into_owned(), kind: EntryKind::File });
                }
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
