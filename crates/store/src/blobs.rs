//! Content-addressed blobs, kept once, compressed, under their BLAKE3 hash: payloads that are too large for a log, contents and
//! trees of workspaces.
//!
//! A blob is on disk, with its name, before the record that refers to it reaches the committer. A payload has a file of its own;
//! what a [`Batch`] brings goes into packs, and has a file of its own only if it is large. One that nobody names is collected
//! after a day; the delay covers records on their way.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

pub use rekindle_domain::blob_id::{BadBlobId, BlobId};
use serde::{Deserialize, Serialize};

pub use crate::blob_error::{BlobError, MAX_BLOB, MAX_CONTENT};
use crate::disk::{DiskFile, EntryKind, OpenMode, SharedDisk, if_exists, lock_within, read_all, replace};
use crate::error::AtPath;
use crate::layout::{Layout, TEMPORARY_SUFFIX};
pub use crate::packs::{Batch, CollectedPacks, Pins};
use crate::packs::{CopyError, Hold, Packs, Rules, copy_verified};

/// How old a blob must be before it may be collected.
pub const COLLECT_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A blob that is kept again is written anew once it is as old as this: its record may take its time, and must not find
/// it collected.
const REFRESH_AFTER: Duration = Duration::from_secs(12 * 60 * 60);

/// Whoever has the lock has it for one blob.
const LOCKED_WITHIN: Duration = Duration::from_secs(10);

/// A collection can wait for another day.
const COLLECTED_WITHIN: Duration = Duration::from_secs(1);

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
    packs: Arc<Packs>,
}

impl Blobs {
    /// Returns the blobs of a home for someone who only reads them, whoever owns the home.
    pub fn reading(disk: SharedDisk, layout: Layout) -> Blobs {
        Blobs::new(disk, layout, Arc::default())
    }

    pub(crate) fn new(disk: SharedDisk, layout: Layout, writing: Arc<Mutex<()>>) -> Blobs {
        let packs = Arc::new(Packs::new(disk.clone(), layout.clone()));
        Blobs { disk, layout, writing, packs }
    }

    /// Begins a batch: many objects that become durable together. Batches of one process go on side by side; one of another process
    /// is waited for.
    pub fn batch(&self) -> Result<Batch, BlobError> {
        Batch::begin(self.packs.clone())
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
        let shard = self.layout.blob_shard(&id);
        let write = || {
            if self.disk.stat(&shard).is_err() {
                self.packs.synced.changed(&self.layout.blobs());
                self.disk.create_dir(&shard)?;
            }
            // Also of a directory that is there: whoever made it may not have lived to sync its name.
            self.packs.synced.ensure(&*self.disk, &self.layout.blobs())?;
            replace(&*self.disk, &path, &zstd::bulk::compress(bytes, LEVEL)?)
        };
        let written = write();
        if written.is_err() {
            // The file may have its name without that being durable.
            self.packs.synced.changed(&shard);
        }
        written.at_path("use", &path)?;
        Ok(reference)
    }

    /// Takes the lock that keeps those who keep blobs and those who collect them apart, whichever process they are.
    fn lock(&self) -> Result<Box<dyn DiskFile>, BlobError> {
        let path = self.layout.blobs_lock();
        let taken = self.disk.open(&path, OpenMode::Create).and_then(|file| {
            let taken = lock_within(&*file, LOCKED_WITHIN)?;
            let busy = || io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked");
            taken.then_some(file).ok_or_else(busy)
        });
        Ok(taken.at_path("use", &path)?)
    }

    fn age(&self, path: &Path, now: SystemTime) -> io::Result<Duration> {
        Ok(now.duration_since(self.disk.stat(path)?.modified).unwrap_or_default())
    }

    /// Returns a blob's bytes, checked against its name, wherever they are.
    pub fn get(&self, id: &BlobId) -> Result<Vec<u8>, BlobError> {
        let packed = self.packs.get(id);
        if let Ok(Some(bytes)) = packed {
            return Ok(bytes);
        }
        let own = self.get_own(id);
        match (packed, own) {
            // What is wrong with a pack is told, unless there is a good copy.
            (Err(error), Err(BlobError::Missing(_))) => Err(error),
            (Ok(None), Err(BlobError::Missing(_))) => {
                // Another process may have written or replaced a pack since we looked.
                self.packs.refresh()?;
                self.packs.get(id)?.ok_or(BlobError::Missing(*id))
            }
            (_, own) => own,
        }
    }

    /// Returns the bytes of a blob with a file of its own.
    fn get_own(&self, id: &BlobId) -> Result<Vec<u8>, BlobError> {
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
            return Err(damaged("its bytes do not match the hash in its name".into()));
        }
        Ok(bytes)
    }

    /// Writes a blob to a writer, in pieces if it is large, and returns its size. Only at the end is a large one known to be what
    /// its name says: after an error whatever was written is worth nothing.
    pub fn copy_to(&self, id: &BlobId, sink: &mut dyn Write) -> Result<u64, BlobError> {
        let path = self.layout.blob(id);
        if let Some(file) = if_exists(self.disk.open(&path, OpenMode::Read)).at_path("read", &path)? {
            return copy_verified(&*file, id, sink).map_err(|error| match error {
                CopyError::Damaged(detail) => BlobError::Damaged { id: *id, path, detail },
                CopyError::Sink(error) => BlobError::Sink(error),
            });
        }
        let bytes = self.get(id)?;
        sink.write_all(&bytes).map_err(BlobError::Sink)?;
        Ok(bytes.len() as u64)
    }

    /// Tells whether a blob is there, without reading it.
    pub fn contains(&self, id: &BlobId) -> Result<bool, BlobError> {
        let is_packed = || Ok(self.packs.find(id, |_, _| ())?.is_some());
        if is_packed()? || self.disk.stat(&self.layout.blob(id)).is_ok() {
            return Ok(true);
        }
        self.packs.refresh()?;
        is_packed()
    }

    /// Returns how much room a blob takes; none if it is not there.
    pub fn stored_size(&self, id: &BlobId) -> Result<Option<u64>, BlobError> {
        let packed = self.packs.find(id, |_, row| u64::from(row.stored))?;
        Ok(packed.or_else(|| self.disk.stat(&self.layout.blob(id)).ok().map(|stat| stat.len)))
    }

    /// Tells whether there are packs. What is in them may name further blobs: whoever collects has to know those too.
    pub fn has_packs(&self) -> Result<bool, BlobError> {
        self.packs.refresh()?;
        Ok(!self.packs.read_table().is_empty())
    }

    /// Lists every blob with its age at `now`.
    pub fn list(&self, now: SystemTime) -> io::Result<BlobList> {
        let BlobList { mut blobs, mut foreign } = BlobList::default();
        for shard in self.disk.list(&self.layout.blobs())? {
            let directory = self.layout.blobs().join(&shard.name);
            if self.layout.is_shared_by_blobs(&directory) {
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

    /// Tells what a collection would do to packs, and changes nothing: no lock is taken, and what dead writers left stays.
    pub fn plan_packs(&self, named: &HashSet<BlobId>, now: SystemTime) -> Result<CollectedPacks, BlobError> {
        self.packs.refresh()?;
        // That of a collection that would begin now.
        let round = self.packs.round() + 1;
        let rules = Rules { named, now, after: COLLECT_AFTER, round, dry_run: true };
        crate::packs::collect(&self.packs, &rules)
    }

    /// Begins a collection: what is put or reused from here on is left alone by it. To be begun before the names are read.
    pub fn begin_collection(&self) -> Result<Collection, BlobError> {
        let hold = self.packs.hold(COLLECTED_WITHIN)?;
        Ok(Collection { blobs: self.clone(), round: self.packs.begin_round(), _hold: hold })
    }

    /// Waits until a collection of another process that goes on has ended, but no longer than this: whoever begins one from here on
    /// reads names that are there by now.
    pub fn await_collection(&self, within: Duration) -> Result<(), BlobError> {
        self.packs.hold(within).map(drop)
    }
}

/// A collection that has begun, and from then on leaves alone what others rely on.
pub struct Collection {
    blobs: Blobs,
    round: u64,
    _hold: Arc<Hold>,
}

impl Collection {
    /// Removes the blobs with files of their own that nobody names and that are older than a day; returns them.
    ///
    /// The caller brings every name in every log it could read; with a log it could not read it must not
    /// call this, because that log may name anything.
    pub fn collect_blobs(&self, named: &HashSet<BlobId>, now: SystemTime) -> io::Result<Vec<BlobId>> {
        let blobs = &self.blobs;
        let is_old = |path: &Path| blobs.age(path, now).is_ok_and(|age| age >= COLLECT_AFTER);
        let mut gone = Vec::new();
        for (id, _) in blobs.unnamed(named, now)? {
            // Looked at once more where nobody can be keeping it at this moment.
            let _nobody_keeps_any = blobs.lock().map_err(io::Error::other)?;
            let path = blobs.layout.blob(&id);
            let removed = blobs.packs.unless_pinned(&id, || {
                if is_old(&path) { blobs.disk.remove_file(&path).map(|()| true) } else { Ok(false) }
            });
            if removed.transpose()? == Some(true) {
                gone.push(id);
            }
        }
        for path in blobs.list(now)?.foreign {
            if path.to_string_lossy().ends_with(TEMPORARY_SUFFIX) && is_old(&path) {
                blobs.disk.remove_file(&path)?;
            }
        }
        Ok(gone)
    }

    /// Removes packs in which nobody needs anything, and writes those anew that are mostly dead, if they are older than a day. The
    /// names have to be complete: also those that trees have in them.
    pub fn collect_packs(
        &self,
        named: &HashSet<BlobId>,
        now: SystemTime,
    ) -> Result<CollectedPacks, BlobError> {
        self.blobs.packs.refresh()?;
        let rules = Rules { named, now, after: COLLECT_AFTER, round: self.round, dry_run: false };
        crate::packs::collect(&self.blobs.packs, &rules)
    }
}
