//! A batch: the objects of one capture, written by several threads and made durable together.
//!
//! Nothing of it is visible before it is committed, and one that is dropped leaves nothing. What is in the store already costs a
//! look-up and no bytes.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rekindle_domain::blob_id::BlobId;

use super::compress::{compressed, with_beginning};
use super::format::{HEADER, Object, PACK_BELOW};
use super::large::Large;
use super::merge::take_in_small_packs;
use super::pack::Pack;
use super::pins::Pins;
use super::table::{Packs, lock};
use super::writer::{PackWriter, Temporary, publish};
use crate::blob_error::BlobError;
use crate::disk::EntryKind;
use crate::error::AtPath;
use crate::threads::map_on_threads;

/// Whoever else has the lock copies a pack at most.
const LOCKED_WITHIN: Duration = Duration::from_secs(10);

/// Objects that become durable together.
pub struct Batch {
    packs: Arc<Packs>,
    // Dropped before the pins, which have the lock: temporary files go while it is ours.
    writer: Mutex<Writer>,
    pins: Mutex<Pins>,
}

#[derive(Default)]
struct Writer {
    /// The pack that objects go to.
    open: Option<PackWriter>,
    /// Packs that are full.
    full: Vec<PackWriter>,
    /// What was put into this batch.
    seen: HashSet<BlobId>,
    /// The room that it takes.
    bytes: u64,
    /// Large ones, each in a file of its own.
    large: Vec<(BlobId, Temporary)>,
    /// Why nothing of this batch can be kept.
    failed: Option<String>,
}

impl Batch {
    pub(crate) fn begin(packs: Arc<Packs>) -> Result<Batch, BlobError> {
        let hold = packs.hold(LOCKED_WITHIN)?;
        packs.make_dir()?;
        let pins = Mutex::new(Pins::new(packs.clone(), hold));
        Ok(Batch { packs, writer: Mutex::default(), pins })
    }

    /// Keeps some bytes and returns their name. They are durable once the batch is committed.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        let id = BlobId::of(bytes);
        if bytes.len() >= PACK_BELOW {
            if !self.reuse(&id)? {
                self.put_large(bytes, &mut io::empty())?;
            }
            return Ok(id);
        }
        self.put_small(id, bytes)?;
        Ok(id)
    }

    /// Keeps what a reader gives, and returns its name and size. Large contents are never in memory as a whole.
    pub fn put_reader(&self, reader: &mut dyn Read) -> Result<(BlobId, u64), BlobError> {
        let put = with_beginning(reader, |beginning, rest| {
            if beginning.len() >= PACK_BELOW {
                return self.put_large(beginning, rest);
            }
            let id = BlobId::of(beginning);
            self.put_small(id, beginning).map(|()| (id, beginning.len() as u64))
        });
        put.map_err(BlobError::Source)?
    }

    /// Pins an object if the store has it, or this batch does: then it need not be put.
    pub fn reuse(&self, id: &BlobId) -> Result<bool, BlobError> {
        Ok(self.is_packed(id)? || lock(&self.writer).seen.contains(id) || self.has_own_file(id, None))
    }

    /// Pins objects if all of them are there, as [`Batch::reuse`] does for one; the locks are taken once for all that are in packs.
    pub fn reuse_all(&self, ids: &[BlobId]) -> Result<bool, BlobError> {
        let mut elsewhere = Vec::new();
        {
            let table = self.packs.read_table();
            let mut pinned: Option<&Arc<Pack>> = None;
            for id in ids {
                let Some((pack, _)) = self.packs.find_in(&table, id)? else {
                    elsewhere.push(id);
                    continue;
                };
                if pinned.is_none_or(|pinned| !Arc::ptr_eq(pinned, pack)) {
                    lock(&self.pins).pin(pack);
                    pinned = Some(pack);
                }
            }
        }
        for id in elsewhere {
            if !self.reuse(id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_packed(&self, id: &BlobId) -> Result<bool, BlobError> {
        Ok(self.packs.find(id, |pack, _| lock(&self.pins).pin(pack))?.is_some())
    }

    /// Tells whether an object has a file of its own, of this length if that is known: a shorter one is damaged for certain.
    fn has_own_file(&self, id: &BlobId, stored: Option<u64>) -> bool {
        let is_there = || {
            let stat = self.packs.disk.stat(&self.packs.layout.blob(id));
            stat.is_ok_and(|stat| {
                stat.kind == EntryKind::File && stored.is_none_or(|stored| stat.len == stored)
            })
        };
        lock(&self.pins).pin_blob(id, is_there)
    }

    fn put_small(&self, id: BlobId, bytes: &[u8]) -> Result<(), BlobError> {
        if self.is_packed(&id)? || lock(&self.writer).seen.contains(&id) {
            return Ok(());
        }
        let added = compressed(bytes, |method, stored| {
            let mut writer = lock(&self.writer);
            writer.add(&self.packs, &Object { id, method, plain: bytes.len(), stored })
        });
        added.at_path("compress for", &self.packs.layout.packs())?
    }

    fn put_large(&self, beginning: &[u8], rest: &mut dyn Read) -> Result<(BlobId, u64), BlobError> {
        let large = Large::write(&self.packs, beginning, rest)?;
        let (id, size, stored) = (large.id, large.size, large.stored);
        if lock(&self.writer).seen.contains(&id) || self.has_own_file(&id, Some(large.stored)) {
            return Ok((id, size));
        }
        // Here, where several threads do so at once, and not one after the other in the end.
        let (id, temporary) = large.sync()?;
        let mut writer = lock(&self.writer);
        if writer.seen.insert(id) {
            writer.bytes += stored;
            writer.large.push((id, temporary));
        }
        Ok((id, size))
    }

    /// Makes everything durable, then visible. What was put and what was reused stays until the guard is dropped.
    pub fn commit(self) -> Result<Pins, BlobError> {
        let Batch { packs, writer, pins } = self;
        let mut pins = pins.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = writer.failed {
            return Err(BlobError::BatchFailed(why));
        }
        pins.set_written(writer.bytes);
        name_large(&packs, &mut pins, writer.large)?;
        let mut replaced = Vec::new();
        if let Some(open) = &mut writer.open {
            replaced = take_in_small_packs(&packs, open, &mut writer.seen, &pins)?;
        }
        let unfinished = writer.full.into_iter().chain(writer.open);
        let finished = unfinished.map(|writer| writer.finish(&packs)).collect::<Result<Vec<_>, _>>()?;
        if !finished.is_empty() {
            let may_go = |pack: &Pack| pack.pins() <= usize::from(pins.has(pack));
            let published = publish(&packs, finished, &replaced, may_go)?;
            published.new.into_iter().for_each(|pack| pins.adopt(pack));
        }
        sync_names(&packs, &pins)?;
        Ok(pins)
    }
}

impl Writer {
    fn add(&mut self, packs: &Packs, object: &Object<'_>) -> Result<(), BlobError> {
        if let Some(why) = &self.failed {
            return Err(BlobError::BatchFailed(why.clone()));
        }
        if !self.seen.insert(object.id) {
            return Ok(());
        }
        let added = self.append(packs, object);
        self.bytes += (HEADER + object.stored.len()) as u64;
        if let Err(error) = &added {
            // What was put before may be in the same buffer: nobody knows any more what the file has.
            self.failed = Some(error.to_string());
        }
        added
    }

    fn append(&mut self, packs: &Packs, object: &Object<'_>) -> Result<(), BlobError> {
        if let Some(open) = self.open.take_if(|open| !open.has_room(object.stored.len())) {
            self.full.push(open);
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(PackWriter::create(packs)?),
        };
        open.append(object)
    }
}

/// Gives large contents their names.
fn name_large(packs: &Packs, pins: &mut Pins, large: Vec<(BlobId, Temporary)>) -> Result<(), BlobError> {
    for (id, temporary) in large {
        let (shard, path) = (packs.layout.blob_shard(&id), packs.layout.blob(&id));
        if packs.disk.stat(&shard).is_err() {
            packs.synced.changed(&packs.layout.blobs());
            packs.disk.create_dir(&shard).at_path("create", &shard)?;
        }
        packs.synced.changed(&shard);
        // Pinned first: a collection must not take it for the one that was there before.
        pins.pin_blob(&id, || true);
        temporary.rename(&path).at_path("create", &path)?;
    }
    Ok(())
}

/// Makes the names of everything durable that this batch relies on, where nobody knows that they are.
fn sync_names(packs: &Packs, pins: &Pins) -> Result<(), BlobError> {
    let mut dirs: BTreeSet<PathBuf> = pins.blobs().map(|id| packs.layout.blob_shard(id)).collect();
    dirs.insert(packs.layout.packs());
    dirs.insert(packs.layout.blobs());
    let dirs: Vec<PathBuf> = dirs.into_iter().collect();
    let most = packs.disk.parallel_syncs();
    let synced =
        map_on_threads(most, &dirs, |dir| packs.synced.ensure(&*packs.disk, dir).at_path("sync", dir));
    Ok(synced.into_iter().collect::<Result<(), _>>()?)
}
