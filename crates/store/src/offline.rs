//! Looking at a home without owning it: the write-ahead log is laid over the logs in memory, and
//! nothing is written. What is seen is what the next owner would make of the files.
//!
//! The overlay is a [`Disk`] itself, so that everything that reads a home reads an overlaid one too.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::id::{SessionId, StreamId};

use crate::blobs::Blobs;
use crate::disk::{Disk, DiskFile, Entry, EntryKind, OpenMode, RetryDisk, SharedDisk, Stat};
use crate::error::AtPath;
use crate::home::{self, HomeError};
use crate::layout::Layout;
use crate::load::{LoadError, Loaded, Want, load, stand_in};
use crate::log::{Damage, LogReader, broken_before};
use crate::redo::{Completion, Plan, open, plan_for};
use crate::survey::{Listing, list, survey};
use crate::wal::scan::{self, ScanError, WalDamage};

/// How often something is looked at again that its owner may just be writing.
const TRIES: u32 = 5;

/// Why a home cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The home itself.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its write-ahead log.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

/// A home as its next owner would find it.
pub struct Offline {
    /// The disk as it is.
    raw: SharedDisk,
    /// The disk as the next owner would make it.
    disk: SharedDisk,
    layout: Layout,
    /// What the next owner would do to the log of each stream the write-ahead log mentions.
    pub pending: Vec<(StreamId, Completion)>,
    /// Damaged stretches of the write-ahead log.
    pub wal_damage: Vec<WalDamage>,
    /// What a crash left at the end of the write-ahead log; it never counted.
    pub wal_torn: Option<WalDamage>,
}

impl Offline {
    /// Looks at a home.
    pub fn open(disk: SharedDisk, home: impl Into<PathBuf>) -> Result<Offline, OfflineError> {
        let (disk, layout) = (Arc::new(RetryDisk(disk)) as SharedDisk, Layout::new(home));
        home::check(&*disk, &layout)?;
        Ok(Offline::regardless(disk, layout)?)
    }

    /// Looks at a home whatever its description says.
    pub(crate) fn regardless(disk: SharedDisk, layout: Layout) -> Result<Offline, ScanError> {
        let scan = settled_scan(&*disk, &layout)?;
        let mut pending = Vec::new();
        let mut patches = HashMap::new();
        for (stream, tail) in scan.by_stream() {
            let planned = open(&*disk, &layout, stream)
                .and_then(|log| plan_for(&*disk, &layout, log.as_ref(), stream, &tail));
            match planned {
                Ok(Plan::Leave(completion)) => pending.push((stream, completion)),
                Ok(Plan::Rewrite { keep, lines, completion }) => {
                    patches.insert(layout.stream_log(stream), Patch { keep, lines: Arc::new(lines) });
                    pending.push((stream, completion));
                }
                Ok(Plan::Remove(_)) => pending.push((stream, Completion::Removed)),
                Err(_) => {} // Reading the log will say what is wrong with it.
            }
        }
        let (raw, disk) = (disk.clone(), Arc::new(Overlay { disk, patches }));
        let wal_torn = scan.torn();
        Ok(Offline { raw, disk, layout, pending, wal_damage: scan.damage, wal_torn })
    }

    /// Returns where everything lives.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the overlaid disk, on which nothing can be written.
    pub fn disk(&self) -> &SharedDisk {
        &self.disk
    }

    /// Loads a session. One that seems damaged is looked at again from the beginning: its owner may have written
    /// a snapshot since the write-ahead log was read, which then reaches further than what was seen of the log.
    pub fn load(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = self.load_once(session, want);
        for _ in 1..TRIES {
            if !loaded.as_ref().is_ok_and(|loaded| loaded.damage.is_some()) {
                break;
            }
            let Ok(again) = Offline::regardless(self.raw.clone(), self.layout.clone()) else { break };
            loaded = again.load_once(session, want);
        }
        loaded
    }

    /// Reads what can be shown of a session that cannot be loaded.
    pub fn stand_in(&self, session: SessionId) -> Loaded {
        stand_in(&*self.disk, &self.layout, session)
    }

    /// Loads a session, and takes for damaged what the next owner would: the write-ahead log may know of records that
    /// neither it nor the log has any more, where the log by itself seems to have a torn end.
    fn load_once(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = load(&*self.disk, &self.layout, session, want)?;
        if loaded.damage.is_none() {
            let known = self.lost().find(|(id, _)| *id == session);
            loaded.damage = known.map(|(_, damage)| damage.clone());
        }
        Ok(loaded)
    }

    /// Returns the sessions that lack records by what the write-ahead log knows of them.
    fn lost(&self) -> impl Iterator<Item = (SessionId, &Damage)> {
        self.pending.iter().filter_map(|(stream, completion)| match completion {
            Completion::Damaged(damage) => stream.session().map(|session| (session, damage)),
            _ => None,
        })
    }

    /// Loads a session, and reads what a snapshot has passed too: only so a byte that rotted there is seen.
    pub fn examine(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = self.load(session, want)?;
        self.look_behind(&mut loaded)?;
        Ok(loaded)
    }

    /// Reads what the caches of a loaded session have passed, unless it is known to be damaged already.
    pub fn look_behind(&self, loaded: &mut Loaded) -> Result<(), LoadError> {
        if loaded.damage.is_none() && loaded.read_from > 0 {
            let session = loaded.state.id;
            let found = self.reader(session);
            let found = found.and_then(|reader| broken_before(&reader, session, loaded.read_from));
            loaded.damage = found.at_path("read", &self.layout.log(session))?;
        }
        Ok(())
    }

    /// Returns the blobs, which can be read and not written.
    pub fn blobs(&self) -> Blobs {
        Blobs::new(self.disk.clone(), self.layout.clone(), Arc::default())
    }

    /// Opens a session's log for reading.
    pub fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        LogReader::open(&*self.disk, &self.layout.log(session), self.layout.codec())
    }

    /// Lists the sessions.
    pub fn sessions(&self) -> io::Result<Vec<SessionId>> {
        self.listing().map(|listing| listing.sessions)
    }

    pub(crate) fn listing(&self) -> io::Result<Listing> {
        list(&*self.disk, &self.layout)
    }

    /// Loads every session, concurrently.
    pub fn survey(
        &self,
        mut visit: impl FnMut(SessionId, Result<Loaded, LoadError>) + Send,
    ) -> io::Result<()> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let lost: HashMap<SessionId, &Damage> = self.lost().collect();
        let mut visit = |session: SessionId, mut loaded: Result<Loaded, LoadError>| {
            if let (Ok(loaded), Some(damage)) = (&mut loaded, lost.get(&session)) {
                loaded.damage.get_or_insert_with(|| (*damage).clone());
            }
            visit(session, loaded);
        };
        survey(&*self.disk, &self.layout, &self.listing()?, threads, &mut visit);
        Ok(())
    }
}

/// Reads the write-ahead log, again if it seems damaged: its owner may just have dropped a segment.
fn settled_scan(disk: &dyn Disk, layout: &Layout) -> Result<scan::Scan, ScanError> {
    for _ in 1..TRIES {
        let scan = scan::scan(disk, layout)?;
        if scan.damage.is_empty() {
            return Ok(scan);
        }
    }
    scan::scan(disk, layout)
}

/// What a log is to look like behind some byte.
struct Patch {
    keep: u64,
    lines: Arc<Vec<u8>>,
}

/// A disk that shows logs as completed and refuses every change.
struct Overlay {
    disk: SharedDisk,
    patches: HashMap<PathBuf, Patch>,
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the home is only being looked at")
}

impl Disk for Overlay {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        if mode != OpenMode::Read {
            return Err(refused());
        }
        let Some(patch) = self.patches.get(path) else { return self.disk.open(path, mode) };
        let file = match self.disk.open(path, mode) {
            Ok(file) => Some(file),
            // A log that only the write-ahead log has so far.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Box::new(PatchedFile { file: file.map(Into::into), keep: patch.keep, lines: patch.lines.clone() }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        match self.patches.get(path) {
            Some(_) => self.open(path, OpenMode::Read)?.stat(),
            None => self.disk.stat(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = self.disk.list(dir)?;
        for path in self.patches.keys().filter(|path| path.parent() == Some(dir)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry { name: name.into_owned(), kind: EntryKind::File });
            }
        }
        Ok(entries)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn set_mode(&self, _: &Path, _: u32) -> io::Result<()> {
        Err(refused())
    }
}

/// A log as completed: the file's good part, and behind it what the write-ahead log has.
pub(crate) struct PatchedFile {
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    pub(crate) keep: u64,
    pub(crate) lines: Arc<Vec<u8>>,
}

impl DiskFile for PatchedFile {
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

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(refused())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Err(refused())
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

    fn try_lock(&self) -> io::Result<bool> {
        Err(refused())
    }
}
