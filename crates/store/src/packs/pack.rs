//! One pack that is there: its index, read or made again, and its objects, each checked when it is read.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use rekindle_domain::blob_id::BlobId;

use super::format::{HEADER, Header, PackId, Scanner, Step};
use super::index::{Index, MAX_INDEX, Row, encode};
use crate::blob_error::BlobError;
use crate::disk::{Disk, DiskFile, OpenMode, if_exists, read_all, read_exact_at};
use crate::error::AtPath;
use crate::layout::Layout;

/// A pack with its index.
pub(crate) struct Pack {
    pub(crate) id: PackId,
    pub(crate) index: Index,
    /// How many batches and guards rely on it; it stays as long as there are any.
    pins: AtomicUsize,
    /// The newest collection that had begun when somebody last relied on it.
    touched: AtomicU64,
    /// Its objects are all there. One that is damaged is read from as far as that goes, and never rewritten or removed.
    pub(crate) is_whole: bool,
    /// Objects that were found damaged when they were read: they count as missing, so that the next batch brings them again.
    bad: RwLock<HashSet<BlobId>>,
    /// Its index had to be made again, and these are its bytes.
    pub(crate) rebuilt: Option<Vec<u8>>,
}

impl Pack {
    /// Returns a pack that was just written.
    pub(crate) fn new(id: PackId, index: Index) -> Pack {
        let (pins, touched) = (AtomicUsize::new(0), AtomicU64::new(0));
        Pack { id, index, pins, touched, is_whole: true, bad: RwLock::default(), rebuilt: None }
    }

    /// Opens a pack. Reads its index alone, unless that is missing or damaged.
    pub(crate) fn open(disk: &dyn Disk, layout: &Layout, id: PackId) -> io::Result<Pack> {
        let path = layout.pack(&id);
        let len = disk.stat(&path)?.len;
        if let Ok(index) = read_index(disk, &layout.pack_index(&id), id) {
            let is_whole = index.pack_len() == len;
            return Ok(Pack { is_whole, ..Pack::new(id, index) });
        }
        let file = disk.open(&path, OpenMode::Read)?;
        let bytes = rebuild(&*file)?;
        let is_whole = PackId::of_index(&bytes) == id;
        let index = Index::read(bytes.clone(), None).map_err(io::Error::other)?;
        Ok(Pack { is_whole, rebuilt: is_whole.then_some(bytes), ..Pack::new(id, index) })
    }

    /// Notes that an object is damaged.
    pub(crate) fn mark_bad(&self, id: BlobId) {
        self.bad.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Tells whether an object is known to be damaged.
    pub(crate) fn is_bad(&self, id: &BlobId) -> bool {
        self.bad.read().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    pub(crate) fn pin(&self) {
        self.pins.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes the place of a pack of the same name, and stays at least as long as that one would. Those who pinned the other let go of
    /// that one alone: this one then stays until the process ends.
    pub(crate) fn take_over_pins(&self, known: &Pack) {
        self.pins.fetch_add(known.pins(), Ordering::SeqCst);
        self.touched.fetch_max(known.touched.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Lets go of it. A collection that has begun may have read the names before the record was there that needs this pack: it
    /// leaves the pack alone.
    pub(crate) fn unpin(&self, round: u64) {
        self.touched.fetch_max(round, Ordering::SeqCst);
        self.pins.fetch_sub(1, Ordering::SeqCst);
    }

    /// Tells whether somebody relies on it, or did so since a collection began.
    pub(crate) fn is_relied_on(&self, round: u64) -> bool {
        self.pins() > 0 || self.touched.load(Ordering::SeqCst) >= round
    }

    pub(crate) fn pins(&self) -> usize {
        self.pins.load(Ordering::SeqCst)
    }
}

/// Reads the index of a pack, and says what is wrong with it if something is.
pub(crate) fn read_index(disk: &dyn Disk, path: &Path, id: PackId) -> Result<Index, String> {
    let bytes = if_exists(read_all(disk, path, MAX_INDEX)).map_err(|error| error.to_string())?;
    Index::read(bytes.ok_or("it is missing")?, Some(id))
}

/// Makes the index of a pack again, of all objects up to the first that is damaged.
pub(crate) fn rebuild(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut scanner = Scanner::new(file)?;
    let (mut rows, mut len) = (Vec::new(), 0);
    while let Step::Object(offset, object) = scanner.step()? {
        let row = Row { id: object.id, offset: offset as u32, stored: object.stored.len() as u32 };
        len = row.end();
        rows.push(row);
    }
    // One that was written twice by somebody else's hand is found where it stands last; the name tells that it is odd.
    rows.sort_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    Ok(encode(&mut rows, len))
}

/// Reads the header and the stored bytes of an object.
fn read_stored(file: &dyn DiskFile, row: &Row) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER + row.stored as usize];
    read_exact_at(file, &mut bytes, row.offset.into())?;
    Ok(bytes)
}

/// An object as it is stored, with its header; the checksum is right.
pub(crate) struct Stored {
    bytes: Vec<u8>,
}

impl Stored {
    /// Reads an object from a pack, which `path` names in errors.
    pub(crate) fn read(file: &dyn DiskFile, row: &Row, path: &Path) -> Result<Stored, BlobError> {
        let damaged = |detail: &str| damaged_at(path, row, detail);
        let bytes = match read_stored(file, row) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(damaged("the pack is cut off"));
            }
            outcome => outcome.at_path("read", path)?,
        };
        let header = Header::read(&bytes);
        if header.id != row.id || header.stored != row.stored || !header.is_possible() {
            return Err(damaged("there is a different object where the index says it is"));
        }
        header.object(&bytes[HEADER..]).map_err(|detail| damaged(&detail))?;
        Ok(Stored { bytes })
    }

    /// Returns the bytes as they stand in the pack.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the plain bytes, checked against the name.
    pub(crate) fn unpack(&self, row: &Row, path: &Path) -> Result<Vec<u8>, BlobError> {
        let object = Header::read(&self.bytes).object(&self.bytes[HEADER..]);
        object.and_then(|object| object.unpack()).map_err(|detail| damaged_at(path, row, &detail))
    }
}

fn damaged_at(path: &Path, row: &Row, detail: &str) -> BlobError {
    let detail = format!("at byte {}: {detail}", row.offset);
    BlobError::Damaged { id: row.id, path: PathBuf::from(path), detail }
}

/// Returns the row of an object, where a pack has one.
pub(crate) fn row_of(pack: &Pack, layout: &Layout, id: &BlobId) -> Result<Option<Row>, BlobError> {
    match pack.index.find(id) {
        Ok(row) => Ok(row),
        // The path is made here alone: a capture looks up a hundred thousand objects.
        failed => Ok(failed.at_path("read", &layout.pack_index(&pack.id))?),
    }
}
