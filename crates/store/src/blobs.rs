//! Content-addressed payloads: what is too large for a log, kept once, compressed, under its BLAKE3 hash.
//!
//! A blob is on disk, with its name, before the record that refers to it reaches the committer. One that no
//! record names is collected after a day; the delay covers records on their way.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

pub use rekindle_domain::blob_id::{BadBlobId, BlobId};
use serde::{Deserialize, Serialize};

use crate::disk::{DiskFile, EntryKind, OpenMode, SharedDisk, if_exists, lock_within, read_all, replace};
use crate::error::{AtPath, PathError};
use crate::layout::{Layout, TEMPORARY_SUFFIX};

/// Largest payload: one line of an agent at its limit.
pub const MAX_BLOB: usize = 64 << 20;

/// How old a blob must be before it may be collected.
pub const COLLECT_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A blob that is kept again is written anew once it is as old as this: its record may take its time, and must not find
/// it collected.
const REFRESH_AFTER: Duration = Duration::from_secs(12 * 60 * 60);

/// Whoever has the lock has it for one blob.
const LOCKED_WITHIN: Duration = Duration::from_secs(10);

/// Fast, and good enough for text.
const LEVEL: i32 = 3;

/// How a record refers to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Its name.
    pub blob: BlobId,
    /// Its plain size.
    pub size: u64,
}

/// Why a blob cannot be kept or given.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is larger than anything we keep.
    #[error("a payload of {0} bytes is larger than the limit of {MAX_BLOB}")]
    TooLarge(usize),
    /// It is not there.
    #[error("blob {0} is missing")]
    Missing(BlobId),
    /// Its bytes are not what its name says.
    #[error("blob {id} in {path} is damaged: {detail}")]
    Damaged {
        /// Its name.
        id: BlobId,
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Its file cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// What is in the blobs' directory.
#[derive(Debug, Default)]
pub struct BlobList {
    /// The blobs and their ages.
    pub blobs: Vec<(BlobId, Duration)>,
    /// Paths that are no blobs of ours.
    pub foreign: Vec<PathBuf>,
}

/// The blobs of a home.
#[derive(Clone)]
pub struct Blobs {
    disk: SharedDisk,
    layout: Layout,
    writing: Arc<Mutex<()>>,
}

impl Blobs {
    /// Returns the blobs of a home for someone who only reads them, whoever owns the home.
    pub fn reading(disk: SharedDisk, layout: Layout) -> Blobs {
        Blobs::new(disk, layout, Arc::default())
    }

    pub(crate) fn new(disk: SharedDisk, layout: Layout, writing: Arc<Mutex<()>>) -> Blobs {
        Blobs { disk, layout, writing }
    }

    /// Keeps some bytes durably and returns how to refer to them. Keeping them again costs a look.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef, BlobError> {
        if bytes.len() > MAX_BLOB {
            return Err(BlobError::TooLarge(bytes.len()));
        }
        let id = BlobId::of(bytes);
        let path = self.layout.blob(&id);
        let reference = BlobRef { blob: id, size: bytes.len() as u64 };
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _not_collected = self.lock()?;
        // A good copy is enough; a bad one is replaced, and so is one that might be collected before a record names it.
        let is_young = || self.age(&path, SystemTime::now()).is_ok_and(|age| age < REFRESH_AFTER);
        if self.get(&id).is_ok_and(|kept| kept == bytes) && is_young() {
            return Ok(reference);
        }
        let write = || {
            let shard = self.layout.blob_shard(&id);
            if self.disk.stat(&shard).is_err() {
                self.disk.create_dir(&shard)?;
                self.disk.sync_dir(&self.layout.blobs())?;
            }
            replace(&*self.disk, &path, &zstd::bulk::compress(bytes, LEVEL)?)
        };
        write().at_path("use", &path)?;
        Ok(reference)
    }

    /// Takes the lock that keeps those who keep blobs and those who collect them apart, whichever process they are.
    fn lock(&self) -> Result<Box<dyn DiskFile>, BlobError> {
        let path = self.layout.blobs_lock();
        let taken = self.disk.open(&path, OpenMode::Create).and_then(|file| {
            let taken = lock_within(&*file, LOCKED_WITHIN)?;
            let busy = || io::Error::new(io::ErrorKind::TimedOut, "another process has it all the time");
            taken.then_some(file).ok_or_else(busy)
        });
        Ok(taken.at_path("use", &path)?)
    }

    fn age(&self, path: &Path, now: SystemTime) -> io::Result<Duration> {
        Ok(now.duration_since(self.disk.stat(path)?.modified).unwrap_or_default())
    }

    /// Returns a blob's bytes, checked against its name.
    pub fn get(&self, id: &BlobId) -> Result<Vec<u8>, BlobError> {
        let path = self.layout.blob(id);
        let packed = if_exists(read_all(&*self.disk, &path, 2 * MAX_BLOB as u64)).at_path("use", &path)?;
        let packed = packed.ok_or(BlobError::Missing(*id))?;
        let damaged = |detail: String| BlobError::Damaged { id: *id, path: path.clone(), detail };
        let mut bytes = Vec::new();
        let unpacked = zstd::stream::read::Decoder::new(&packed[..])
            // One byte more than allowed tells a bomb from a large blob.
            .and_then(|decoder| decoder.take(MAX_BLOB as u64 + 1).read_to_end(&mut bytes));
        unpacked.map_err(|error| damaged(error.to_string()))?;
        if bytes.len() > MAX_BLOB {
            return Err(damaged(format!("it unpacks to more than {MAX_BLOB} bytes")));
        }
        if BlobId::of(&bytes) != *id {
            return Err(damaged("its bytes do not have the hash in its name".into()));
        }
        Ok(bytes)
    }

    /// Lists every blob with its age at `now`.
    pub fn list(&self, now: SystemTime) -> io::Result<BlobList> {
        let BlobList { mut blobs, mut foreign } = BlobList::default();
        for shard in self.disk.list(&self.layout.blobs())? {
            let directory = self.layout.blobs().join(&shard.name);
            if directory == self.layout.blobs_lock() {
                continue;
            }
            if shard.kind != EntryKind::Dir || shard.name.len() != 2 {
                foreign.push(directory);
                continue;
            }
            for entry in self.disk.list(&directory)? {
                let path = directory.join(&entry.name);
                let id = entry.name.strip_suffix(".zst").and_then(|name| name.parse::<BlobId>().ok());
                match id.filter(|id| self.layout.blob(id) == path) {
                    Some(id) => blobs.push((id, self.age(&path, now)?)),
                    None => foreign.push(path),
                }
            }
        }
        Ok(BlobList { blobs, foreign })
    }

    /// Returns the blobs that no record names and that are older than a day, with their sizes on disk.
    pub fn unnamed(&self, named: &HashSet<BlobId>, now: SystemTime) -> io::Result<Vec<(BlobId, u64)>> {
        let blobs = self.list(now)?.blobs;
        let old = blobs.into_iter().filter(|(id, age)| *age >= COLLECT_AFTER && !named.contains(id));
        let sized = |(id, _): (BlobId, Duration)| {
            let size = self.disk.stat(&self.layout.blob(&id)).map_or(0, |stat| stat.len);
            (id, size)
        };
        Ok(old.map(sized).collect())
    }

    /// Removes the blobs that no record names and that are older than a day; returns them.
    ///
    /// The caller brings every name in every log it could read; with a log it could not read it must not
    /// call this, because that log may name anything.
    pub fn collect(&self, named: &HashSet<BlobId>, now: SystemTime) -> io::Result<Vec<BlobId>> {
        let is_old = |path: &Path| self.age(path, now).is_ok_and(|age| age >= COLLECT_AFTER);
        let mut gone = Vec::new();
        for (id, _) in self.unnamed(named, now)? {
            // Looked at once more where nobody can be keeping it at this moment.
            let _nobody_keeps_any = self.lock().map_err(io::Error::other)?;
            let path = self.layout.blob(&id);
            if is_old(&path) {
                self.disk.remove_file(&path)?;
                gone.push(id);
            }
        }
        for path in self.list(now)?.foreign {
            if path.to_string_lossy().ends_with(TEMPORARY_SUFFIX) && is_old(&path) {
                self.disk.remove_file(&path)?;
            }
        }
        Ok(gone)
    }
}
