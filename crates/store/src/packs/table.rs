//! The packs of a home as one process knows them: where an object is, which packs are relied on, and who may change them.
//!
//! Two locks keep writers and collectors apart. Between processes it is `blobs/batch.lock`, which a process has as long as it
//! writes or relies on anything here. Within one it is the table: looking an object up and pinning its pack happen under its read
//! lock, taking a pack out under its write lock, and only packs without pins are taken out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use rekindle_domain::blob_id::BlobId;

use super::format::PackId;
use super::index::Row;
use super::pack::{Pack, Stored, row_of};
use super::synced_dirs::SyncedDirs;
use crate::blob_error::BlobError;
use crate::disk::{DiskFile, OpenMode, SharedDisk, if_exists, lock_within, replace};
use crate::error::AtPath;
use crate::layout::{Layout, PACK_INDEX_SUFFIX, PACK_SUFFIX, TEMPORARY_SUFFIX};

/// How much memory the rows of all indexes may take: 1.6 million objects. Those of packs beyond that are read from disk.
const INDEX_MEMORY: usize = 64 << 20;

/// How many packs are kept open for reading.
const OPEN_PACKS: usize = 16;

/// The packs of a home.
pub(crate) struct Packs {
    pub(crate) disk: SharedDisk,
    pub(crate) layout: Layout,
    pub(crate) table: RwLock<Vec<Arc<Pack>>>,
    /// Held while the directory changes, or is compared with the table.
    changing: Mutex<()>,
    /// The pack in which something was found last: the next thing is likely to be there too.
    hint: AtomicUsize,
    open: Mutex<VecDeque<(PackId, Arc<dyn DiskFile>)>>,
    /// Blobs with a file of their own that batches and guards rely on, or did since the newest collection began.
    pinned_blobs: Mutex<HashMap<BlobId, usize>>,
    /// How many collections have begun.
    round: AtomicU64,
    hold: Mutex<Weak<Hold>>,
    temporaries: AtomicU64,
    pub(crate) synced: SyncedDirs,
}

/// The right to change the packs of a home, shared by everybody in this process who writes or relies on some.
pub(crate) struct Hold {
    _lock: Box<dyn DiskFile>,
}

impl Packs {
    pub(crate) fn new(disk: SharedDisk, layout: Layout) -> Packs {
        Packs {
            disk,
            layout,
            table: RwLock::default(),
            changing: Mutex::default(),
            hint: AtomicUsize::new(0),
            open: Mutex::default(),
            pinned_blobs: Mutex::default(),
            round: AtomicU64::new(0),
            hold: Mutex::default(),
            temporaries: AtomicU64::new(0),
            synced: SyncedDirs::default(),
        }
    }

    /// Takes the right to change packs, which others in this process may have too. Whoever is first looks what is there, writes down
    /// indexes that are missing, and removes what dead writers left.
    pub(crate) fn hold(&self, within: Duration) -> Result<Arc<Hold>, BlobError> {
        let mut known = lock(&self.hold);
        if let Some(hold) = known.upgrade() {
            return Ok(hold);
        }
        let path = self.layout.batch_lock();
        let taken = self.disk.open(&path, OpenMode::Create).and_then(|file| {
            let taken = lock_within(&*file, within)?;
            let busy = || io::Error::new(io::ErrorKind::TimedOut, "another process is writing to it");
            taken.then_some(file).ok_or_else(busy)
        });
        let hold = Arc::new(Hold { _lock: taken.at_path("lock", &path)? });
        let dir = self.layout.packs();
        self.remove_leftovers().at_path("list", &dir)?;
        self.refresh()?;
        self.write_rebuilt();
        *known = Arc::downgrade(&hold);
        Ok(hold)
    }

    /// Makes the directory of packs, if there is none.
    pub(crate) fn make_dir(&self) -> Result<(), BlobError> {
        let (dir, blobs) = (self.layout.packs(), self.layout.blobs());
        if self.disk.stat(&dir).is_err() {
            self.synced.changed(&blobs);
            self.disk.create_dir(&dir).at_path("create", &dir)?;
        }
        Ok(self.synced.ensure(&*self.disk, &blobs).at_path("sync", &blobs)?)
    }

    /// Removes what dead writers left: temporary files, and indexes whose pack never got its name or is gone.
    fn remove_leftovers(&self) -> io::Result<()> {
        let dir = self.layout.packs();
        let entries = if_exists(self.disk.list(&dir))?.unwrap_or_default();
        let names: HashSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        for name in &names {
            let is_alone = name.strip_suffix(PACK_INDEX_SUFFIX).is_some_and(|id| {
                id.parse::<PackId>().is_ok() && !names.contains(&*format!("{id}{PACK_SUFFIX}"))
            });
            if is_alone || name.ends_with(TEMPORARY_SUFFIX) {
                // Best effort: nobody reads it, and the next one tries again.
                let _ = self.disk.remove_file(&dir.join(name));
            }
        }
        Ok(())
    }

    /// Writes the indexes down that had to be made again. Best effort: they are in memory, and the next process tries again.
    fn write_rebuilt(&self) {
        for pack in self.read_table().iter() {
            if let Some(bytes) = &pack.rebuilt {
                let _ = replace(&*self.disk, &self.layout.pack_index(&pack.id), bytes);
            }
        }
    }

    /// Returns a name for a file that is being written.
    pub(crate) fn temporary(&self, suffix: &str) -> PathBuf {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        self.layout.packs().join(format!("{number}{suffix}{TEMPORARY_SUFFIX}"))
    }

    pub(crate) fn read_table(&self) -> std::sync::RwLockReadGuard<'_, Vec<Arc<Pack>>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write_table(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Arc<Pack>>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else compares the table with the directory, or changes both.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// Looks which packs there are now: another process may have added or replaced some.
    pub(crate) fn refresh(&self) -> Result<(), BlobError> {
        let _changing = self.changing();
        let dir = self.layout.packs();
        let entries = if_exists(self.disk.list(&dir)).at_path("list", &dir)?.unwrap_or_default();
        let names = entries.iter().filter_map(|entry| entry.name.strip_suffix(PACK_SUFFIX)?.parse().ok());
        let there: HashSet<PackId> = names.collect();
        let (known, mut memory) = {
            let table = self.read_table();
            let known: HashSet<PackId> = table.iter().map(|pack| pack.id).collect();
            (known, table.iter().map(|pack| pack.index.memory()).sum::<usize>())
        };
        let mut new = Vec::new();
        let mut unknown: Vec<PackId> = there.difference(&known).copied().collect();
        unknown.sort_unstable();
        for id in unknown {
            // One that is gone was removed since it was listed.
            let opened = if_exists(Pack::open(&*self.disk, &self.layout, id));
            let Some(mut pack) = opened.at_path("read", &self.layout.pack(&id))? else { continue };
            memory += pack.index.memory();
            if memory > INDEX_MEMORY && pack.rebuilt.is_none() && pack.is_whole {
                let path = self.layout.pack_index(&id);
                memory -= pack.index.memory();
                pack.index.leave_on_disk(self.disk.open(&path, OpenMode::Read).at_path("read", &path)?);
            }
            new.push(Arc::new(pack));
        }
        if !new.is_empty() {
            // Nobody knows whether whoever wrote them lived to sync the directory.
            self.synced.changed(&dir);
        }
        let mut table = self.write_table();
        table.retain(|pack| there.contains(&pack.id));
        table.extend(new);
        Ok(())
    }

    /// Looks for an object in the packs that are known, and does something with its pack before anybody can take that out.
    pub(crate) fn find<T>(
        &self,
        id: &BlobId,
        found: impl FnOnce(&Arc<Pack>, Row) -> T,
    ) -> Result<Option<T>, BlobError> {
        let table = self.read_table();
        Ok(self.find_in(&table, id)?.map(|(pack, row)| found(pack, row)))
    }

    /// Looks for an object in a table that is locked, so that many are looked up under one lock.
    pub(crate) fn find_in<'t>(
        &self,
        table: &'t [Arc<Pack>],
        id: &BlobId,
    ) -> Result<Option<(&'t Arc<Pack>, Row)>, BlobError> {
        let hint = self.hint.load(Ordering::Relaxed);
        let good = |pack: &Arc<Pack>| -> Result<Option<Row>, BlobError> {
            Ok(row_of(pack, &self.layout, id)?.filter(|_| !pack.is_bad(id)))
        };
        if let Some(pack) = table.get(hint)
            && let Some(row) = good(pack)?
        {
            return Ok(Some((pack, row)));
        }
        for (at, pack) in table.iter().enumerate().filter(|(at, _)| *at != hint) {
            if let Some(row) = good(pack)? {
                self.hint.store(at, Ordering::Relaxed);
                return Ok(Some((pack, row)));
            }
        }
        Ok(None)
    }

    /// Returns an object of a pack that is known, checked; none if there is none. One that is damaged in one pack may be whole in
    /// another.
    pub(crate) fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError> {
        while let Some((pack, row)) = self.find(id, |pack, row| (pack.clone(), row))? {
            let path = self.layout.pack(&pack.id);
            let Some(file) = if_exists(self.file(pack.id)).at_path("read", &path)? else { return Ok(None) };
            match Stored::read(&*file, &row, &path).and_then(|stored| stored.unpack(&row, &path)) {
                Err(BlobError::Damaged { .. }) => pack.mark_bad(*id),
                outcome => return outcome.map(Some),
            }
        }
        // Said again as it was found: whoever asks learns where the damage is.
        for pack in self.read_table().iter().filter(|pack| pack.is_bad(id)) {
            let (path, Some(row)) = (self.layout.pack(&pack.id), row_of(pack, &self.layout, id)?) else {
                continue;
            };
            let file = self.file(pack.id).at_path("read", &path)?;
            return Stored::read(&*file, &row, &path).and_then(|stored| stored.unpack(&row, &path)).map(Some);
        }
        Ok(None)
    }

    /// Returns a pack's file, open for reading.
    pub(crate) fn file(&self, id: PackId) -> io::Result<Arc<dyn DiskFile>> {
        let mut open = lock(&self.open);
        if let Some((_, file)) = open.iter().find(|(known, _)| *known == id) {
            return Ok(file.clone());
        }
        let file: Arc<dyn DiskFile> = self.disk.open(&self.layout.pack(&id), OpenMode::Read)?.into();
        if open.len() == OPEN_PACKS {
            open.pop_front();
        }
        open.push_back((id, file.clone()));
        Ok(file)
    }

    /// Forgets the file of a pack that is gone.
    pub(crate) fn close(&self, id: PackId) {
        lock(&self.open).retain(|(known, _)| *known != id);
    }

    /// Pins a blob with a file of its own, if the file is there.
    pub(crate) fn pin_blob(&self, id: &BlobId, is_there: impl FnOnce() -> bool) -> bool {
        let mut pinned = lock(&self.pinned_blobs);
        let there = is_there();
        if there {
            *pinned.entry(*id).or_default() += 1;
        }
        there
    }

    pub(crate) fn unpin_blob(&self, id: &BlobId) {
        // It stays in the list until the next collection begins: one that goes on may have read the names too early.
        if let Some(count) = lock(&self.pinned_blobs).get_mut(id) {
            *count = count.saturating_sub(1);
        }
    }

    /// Does something to a blob's file, unless somebody relies on the blob.
    pub(crate) fn unless_pinned<T>(&self, id: &BlobId, call: impl FnOnce() -> T) -> Option<T> {
        let pinned = lock(&self.pinned_blobs);
        (!pinned.contains_key(id)).then(call)
    }

    /// Begins a collection, before any name is read; returns its number.
    pub(crate) fn begin_round(&self) -> u64 {
        lock(&self.pinned_blobs).retain(|_, count| *count > 0);
        self.round.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the number of the newest collection.
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }
}

/// Takes a lock. What it guards is never left half-changed, so that a panic elsewhere changes nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
