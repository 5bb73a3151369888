//! Kept snapshots on disk: `sessions/<id>.snapshots/<seq>-<n>.json`, compressed or not. Each is written once, atomically and
//! durably, before the record that tells of it, and never changed.

mod format;
mod migrations;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_domain::event::Compression;
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KEPT_SNAPSHOT_VERSION, KeptSnapshot, SnapshotName};

use self::format::{Unusable, decode, encode, file_name, parse_file_name, plain};
use crate::disk::{Disk, EntryKind, SharedDisk, if_exists, read_all, replace};
use crate::error::{AtPath, PathError};
use crate::layout::Layout;

/// Largest file of a snapshot that is read.
const MAX_FILE: u64 = 64 << 20;

/// Why a snapshot cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is none of that name.
    #[error("{session} has no snapshot {name}")]
    NotFound {
        /// The session.
        session: SessionId,
        /// The name.
        name: SnapshotName,
    },
    /// A newer version wrote it; the file is left alone.
    #[error(
        "snapshot {path} has version {found}, newer than version {known} which this Rekindle knows; use a newer Rekindle for it"
    )]
    Version {
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest known one.
        known: u32,
    },
    /// Its bytes are not what was written; the file is kept.
    #[error("snapshot {path} is damaged: {detail}")]
    Corrupted {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Its file cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// A snapshot's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name.
    pub name: SnapshotName,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes on disk.
    pub size: u64,
    /// When it was written.
    pub modified: SystemTime,
    compression: Compression,
}

impl SnapshotFile {
    /// Returns how it is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

/// A snapshot that was just kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its file.
    pub file: SnapshotFile,
    /// How long that took.
    pub took: Duration,
}

/// The kept snapshots of a home.
#[derive(Clone)]
pub struct KeptSnapshots {
    disk: SharedDisk,
    layout: Layout,
}

impl KeptSnapshots {
    /// Returns the snapshots of a home.
    pub fn new(disk: SharedDisk, layout: Layout) -> KeptSnapshots {
        KeptSnapshots { disk, layout }
    }

    /// Keeps a snapshot durably; returns its name and its size. One writer at a time for a session.
    pub fn write(
        &self,
        snapshot: &KeptSnapshot,
        compression: Compression,
    ) -> Result<SnapshotFile, SnapshotError> {
        let directory = self.layout.history(snapshot.session_id);
        let taken = self.files(snapshot.session_id)?;
        let last = taken.keys().filter(|name| name.seq == snapshot.seq).map(|name| name.number).max();
        let name = SnapshotName { seq: snapshot.seq, number: last.unwrap_or(0) + 1 };
        let path = directory.join(file_name(name, compression));
        let write = || {
            if self.disk.stat(&directory).is_err() {
                self.disk.create_dir(&directory)?;
                self.disk.sync_dir(&self.layout.sessions())?;
            }
            replace(&*self.disk, &path, &encode(snapshot, compression)?)?;
            self.disk.stat(&path)
        };
        let stat = write().at_path("write", &path)?;
        Ok(SnapshotFile { name, path, size: stat.len, modified: stat.modified, compression })
    }

    /// Lists a session's snapshots, oldest first, without reading them.
    pub fn list(&self, session: SessionId) -> Result<Vec<SnapshotFile>, SnapshotError> {
        Ok(self.files(session)?.into_values().collect())
    }

    /// Reads a snapshot.
    pub fn read(&self, session: SessionId, name: SnapshotName) -> Result<KeptSnapshot, SnapshotError> {
        self.find(session, name).map(|(_, snapshot)| snapshot)
    }

    /// Finds a snapshot's file and reads it.
    pub fn find(
        &self,
        session: SessionId,
        name: SnapshotName,
    ) -> Result<(SnapshotFile, KeptSnapshot), SnapshotError> {
        let missing = || SnapshotError::NotFound { session, name };
        let file = self.files(session)?.remove(&name).ok_or_else(missing)?;
        let bytes = if_exists(read_all(&*self.disk, &file.path, MAX_FILE)).at_path("read", &file.path)?;
        let path = file.path.clone();
        let snapshot =
            decode(&bytes.ok_or_else(missing)?, file.compression).map_err(|unusable| match unusable {
                Unusable::Newer(found) => {
                    SnapshotError::Version { path: path.clone(), found, known: KEPT_SNAPSHOT_VERSION }
                }
                Unusable::Corrupted(detail) => SnapshotError::Corrupted { path: path.clone(), detail },
            })?;
        if (snapshot.session_id, snapshot.seq) != (session, name.seq) {
            let (of, seq) = (snapshot.session_id, snapshot.seq);
            return Err(SnapshotError::Corrupted {
                path,
                detail: format!("it is a snapshot of {of} at record {seq}"),
            });
        }
        Ok((file, snapshot))
    }

    /// Removes a snapshot durably.
    pub fn remove(&self, session: SessionId, name: SnapshotName) -> Result<(), SnapshotError> {
        match self.remove_all(session, &[name])? {
            0 => Err(SnapshotError::NotFound { session, name }),
            _ => Ok(()),
        }
    }

    /// Removes some of a session's snapshots durably, and tells how many there were.
    pub fn remove_all(&self, session: SessionId, names: &[SnapshotName]) -> Result<usize, SnapshotError> {
        let files = self.files(session)?;
        let mut removed = 0;
        for file in names.iter().filter_map(|name| files.get(name)) {
            removed += usize::from(
                if_exists(self.disk.remove_file(&file.path)).at_path("remove", &file.path)?.is_some(),
            );
        }
        if removed > 0 {
            let directory = self.layout.history(session);
            self.disk.sync_dir(&directory).at_path("sync", &directory)?;
        }
        Ok(removed)
    }

    /// Returns the files of a session's snapshots. What a crash left of writing one has another name, and is none.
    fn files(&self, session: SessionId) -> Result<BTreeMap<SnapshotName, SnapshotFile>, SnapshotError> {
        let directory = self.layout.history(session);
        let entries = if_exists(self.disk.list(&directory)).at_path("list", &directory)?;
        let mut files = BTreeMap::new();
        for entry in entries.unwrap_or_default() {
            let Some((name, compression)) = parse_file_name(&entry.name) else { continue };
            let path = directory.join(&entry.name);
            let stat = if_exists(self.disk.stat(&path)).at_path("look at", &path)?;
            if let Some(stat) = stat.filter(|_| entry.kind == EntryKind::File) {
                let file = SnapshotFile { name, path, size: stat.len, modified: stat.modified, compression };
                files.insert(name, file);
            }
        }
        Ok(files)
    }
}

/// Reads the text of a snapshot's file as it is; none if the file is no snapshot's. For those who look for names in it, and not at
/// what it says.
pub(crate) fn read_text(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, compression)) = parse_file_name(name) else { return Ok(None) };
    plain(&read_all(disk, path, MAX_FILE)?, compression).map(Some)
}
