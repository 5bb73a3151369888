//! Where objects go and come from: file contents and tree objects alike, each named by its [`BlobId`].
//! The store implements both sides with packs and blobs; [`MemoryObjects`] is for tests.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rekindle_domain::blob_id::BlobId;

/// Where a capture puts contents and tree objects, and what it can rely on being there.
pub trait ObjectSink: Sync {
    /// Keeps some bytes and returns their name. Keeping the same bytes again is cheap and changes nothing.
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId>;

    /// Keeps everything that `content` yields and returns its name and length, without holding it in memory.
    ///
    /// An error of `content` itself is returned as it is; nothing is named then.
    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)>;

    /// Returns true if the object is there and stays for this capture, so that it need not be put again.
    fn reuse(&self, id: &BlobId) -> bool;

    /// Returns true if all of them are there and stay. A sink with a lock takes it once for a whole directory.
    fn reuse_all(&self, ids: &[BlobId]) -> bool {
        ids.iter().all(|id| self.reuse(id))
    }
}

/// Where contents and tree objects are read from.
pub trait ObjectSource: Sync {
    /// Returns an object's bytes; [`io::ErrorKind::FileTooLarge`] if there are more than `limit`, so that an object that
    /// claims to be a tree cannot fill the memory, [`io::ErrorKind::NotFound`] if it is not there.
    fn get(&self, id: &BlobId, limit: u64) -> io::Result<Vec<u8>>;

    /// Writes an object's bytes to `out` as they come.
    fn read(&self, id: &BlobId, out: &mut dyn Write) -> io::Result<()>;
}

/// Objects in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryObjects(Mutex<HashMap<BlobId, Vec<u8>>>);

impl MemoryObjects {
    /// Returns an empty collection.
    pub fn new() -> MemoryObjects {
        MemoryObjects::default()
    }

    /// Removes an object and returns whether it was there.
    pub fn forget(&self, id: &BlobId) -> bool {
        self.objects().remove(id).is_some()
    }

    /// Files `bytes` under a name that need not be theirs: damage, or a hostile object.
    pub fn falsify(&self, id: BlobId, bytes: Vec<u8>) {
        self.objects().insert(id, bytes);
    }

    /// Returns how many objects there are.
    pub fn len(&self) -> usize {
        self.objects().len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<BlobId, Vec<u8>>> {
        // Whoever panicked left a map that is whole: it is changed by single calls only.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObjectSink for MemoryObjects {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = BlobId::of(bytes);
        self.objects().entry(id).or_insert_with(|| bytes.to_vec());
        Ok(id)
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        Ok((self.put(&bytes)?, bytes.len() as u64))
    }

    fn reuse(&self, id: &BlobId) -> bool {
        self.objects().contains_key(id)
    }
}

impl ObjectSource for MemoryObjects {
    fn get(&self, id: &BlobId, limit: u64) -> io::Result<Vec<u8>> {
        let objects = self.objects();
        let bytes = objects.get(id).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.clone())
    }

    fn read(&self, id: &BlobId, out: &mut dyn Write) -> io::Result<()> {
        let bytes = self.get(id, u64::MAX)?;
        out.write_all(&bytes)
    }
}
