//! Writing a pack: objects go to a temporary file; when it is whole and synced, with its index, it gets its name.
//!
//! A crash before that leaves a temporary file that nobody reads. The index gets its name before the pack does: whoever sees a
//! pack sees its index too.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{HEADER, MAGIC, MAX_OBJECTS, MAX_PACK, Object, PackId};
use super::index::{Index, Row, encode};
use super::pack::{Pack, Stored};
use super::table::Packs;
use crate::blob_error::BlobError;
use crate::disk::{DiskFile, OpenMode, SharedDisk, write_all_at};
use crate::error::AtPath;

/// How much is written at a time.
const BUFFER: usize = 1 << 20;

/// A file that is removed unless it gets a name.
pub(crate) struct Temporary {
    disk: SharedDisk,
    path: Option<PathBuf>,
}

impl Temporary {
    /// Makes an empty file.
    pub(crate) fn create(packs: &Packs, suffix: &str) -> Result<(Temporary, Box<dyn DiskFile>), BlobError> {
        let path = packs.temporary(suffix);
        let file = packs.disk.open(&path, OpenMode::Replace).at_path("create", &path)?;
        Ok((Temporary { disk: packs.disk.clone(), path: Some(path) }, file))
    }

    /// Gives it its name, which is durable once its directory is synced.
    pub(crate) fn rename(mut self, to: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.disk.rename(path, to)?;
        }
        self.path = None;
        Ok(())
    }

    /// Returns where it is now.
    pub(crate) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Best effort: the next writer removes what is left.
            let _ = self.disk.remove_file(path);
        }
    }
}

/// A pack that is being written.
pub(crate) struct PackWriter {
    // Closed before it is removed.
    file: Box<dyn DiskFile>,
    temporary: Temporary,
    buffer: Vec<u8>,
    /// How much of it is in the file.
    written: u64,
    rows: Vec<Row>,
}

impl PackWriter {
    pub(crate) fn create(packs: &Packs) -> Result<PackWriter, BlobError> {
        let (temporary, file) = Temporary::create(packs, ".pack")?;
        Ok(PackWriter { file, temporary, buffer: MAGIC.to_vec(), written: 0, rows: Vec::new() })
    }

    /// Returns how long it is so far.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Tells whether an object of so many stored bytes still goes in.
    pub(crate) fn has_room(&self, stored: usize) -> bool {
        self.has_room_for(1, (HEADER + stored) as u64)
    }

    /// Tells whether so many objects still go in, of so many bytes with their headers.
    pub(crate) fn has_room_for(&self, objects: usize, bytes: u64) -> bool {
        self.len() + bytes <= MAX_PACK && self.rows.len() + objects <= MAX_OBJECTS
    }

    /// Adds an object.
    pub(crate) fn append(&mut self, object: &Object<'_>) -> Result<(), BlobError> {
        let row = Row { id: object.id, offset: self.len() as u32, stored: object.stored.len() as u32 };
        self.buffer.extend_from_slice(&object.header());
        self.buffer.extend_from_slice(object.stored);
        self.rows.push(row);
        self.flush_if(BUFFER)
    }

    /// Adds an object of another pack as it stands there.
    pub(crate) fn append_stored(&mut self, row: &Row, stored: &Stored) -> Result<(), BlobError> {
        let row = Row { offset: self.len() as u32, ..*row };
        self.buffer.extend_from_slice(stored.bytes());
        self.rows.push(row);
        self.flush_if(BUFFER)
    }

    fn flush_if(&mut self, enough: usize) -> Result<(), BlobError> {
        if self.buffer.len() < enough {
            return Ok(());
        }
        write_all_at(&*self.file, &self.buffer, self.written).at_path("write", self.temporary.path())?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Makes pack and index durable, under the names they have now.
    pub(crate) fn finish(mut self, packs: &Packs) -> Result<Finished, BlobError> {
        self.flush_if(1)?;
        self.file.sync().at_path("sync", self.temporary.path())?;
        let bytes = encode(&mut self.rows, self.written);
        let (index_file, file) = Temporary::create(packs, ".idx")?;
        let write = || write_all_at(&*file, &bytes, 0).and_then(|()| file.sync());
        write().at_path("write", index_file.path())?;
        let id = PackId::of_index(&bytes);
        let index = Index::read(bytes, Some(id)).map_err(io::Error::other);
        let index = index.at_path("use", index_file.path())?;
        Ok(Finished { pack: Arc::new(Pack::new(id, index)), pack_file: self.temporary, index_file })
    }
}

/// A pack that is whole and durable and has no name yet.
pub(crate) struct Finished {
    pub(crate) pack: Arc<Pack>,
    pack_file: Temporary,
    index_file: Temporary,
}

/// What became of packs that were given their names.
pub(crate) struct Published {
    /// They themselves.
    pub(crate) new: Vec<Arc<Pack>>,
    /// The packs that they replaced and that are gone.
    pub(crate) gone: Vec<Arc<Pack>>,
}

/// Gives packs their names, durably, and has everybody find them; then removes those they replace, as far as they
/// may go at that moment. The new ones are pinned for the caller.
pub(crate) fn publish(
    packs: &Packs,
    finished: Vec<Finished>,
    replaced: &[Arc<Pack>],
    may_go: impl Fn(&Pack) -> bool,
) -> Result<Published, BlobError> {
    let dir = packs.layout.packs();
    let _changing = packs.changing();
    let mut new: Vec<Arc<Pack>> = Vec::new();
    packs.synced.changed(&dir);
    for Finished { pack, pack_file, index_file } in finished {
        let (path, index_path) = (packs.layout.pack(&pack.id), packs.layout.pack_index(&pack.id));
        index_file.rename(&index_path).at_path("create", &index_path)?;
        pack_file.rename(&path).at_path("create", &path)?;
        new.push(pack);
    }
    packs.synced.ensure(&*packs.disk, &dir).at_path("sync", &dir)?;
    let mut gone = Vec::new();
    {
        let mut table = packs.write_table();
        for pack in &new {
            pack.pin();
            packs.close(pack.id);
            // The same objects in the same order make the same pack. What was there under that name may have been damaged.
            match table.iter_mut().find(|known| known.id == pack.id) {
                Some(known) => {
                    pack.take_over_pins(known);
                    *known = pack.clone();
                }
                None => table.push(pack.clone()),
            }
        }
        let is_new = |id: PackId| new.iter().any(|pack| pack.id == id);
        for pack in replaced.iter().filter(|pack| !is_new(pack.id) && may_go(pack)) {
            table.retain(|known| known.id != pack.id);
            gone.push(pack.clone());
        }
    }
    for pack in &gone {
        // Best effort: one that stays has nothing that is not elsewhere, and is collected some day.
        let _ = remove(packs, pack.id);
    }
    if !gone.is_empty() {
        let _ = packs.disk.sync_dir(&dir);
    }
    Ok(Published { new, gone })
}

/// Removes a pack, and then its index: an index alone is nothing.
pub(crate) fn remove(packs: &Packs, id: PackId) -> io::Result<()> {
    packs.close(id);
    packs.disk.remove_file(&packs.layout.pack(&id))?;
    packs.disk.remove_file(&packs.layout.pack_index(&id))
}
