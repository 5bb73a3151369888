//! Objects of a restore: put and read while it goes on, and collected by nobody until it is over.

use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rekindle_domain::blob_id::BlobId;
use rekindle_store::blobs::{Batch, Blobs, Pins};
use rekindle_workspace::{ObjectSink, ObjectSource};

use super::objects::{BatchSink, BlobSource, io_error};

/// Objects of one restore: what it puts is collected by nobody until it is over.
pub(super) struct RestoreObjects {
    blobs: Blobs,
    source: BlobSource,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// What was put and is not durable yet.
    batch: Option<Batch>,
    /// What is.
    pins: Vec<Pins>,
}

impl RestoreObjects {
    pub(super) fn new(blobs: Blobs) -> RestoreObjects {
        RestoreObjects { source: BlobSource(blobs.clone()), blobs, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the batch that is open.
    fn with_batch<T>(&self, call: impl FnOnce(&BatchSink<'_>) -> io::Result<T>) -> io::Result<T> {
        let mut open = self.lock();
        let batch = match open.batch.take() {
            Some(batch) => batch,
            None => self.blobs.batch().map_err(io_error)?,
        };
        let called = call(&BatchSink(&batch));
        open.batch = Some(batch);
        called
    }

    /// Makes everything durable that was put; tells whether there was anything.
    pub(super) fn commit(&self) -> io::Result<bool> {
        let mut open = self.lock();
        let Some(batch) = open.batch.take() else { return Ok(false) };
        let pins = batch.commit().map_err(io_error)?;
        open.pins.push(pins);
        Ok(true)
    }
}

impl ObjectSink for RestoreObjects {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        self.with_batch(|batch| batch.put(bytes))
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        self.with_batch(|batch| batch.put_reader(content))
    }

    fn reuse(&self, id: &BlobId) -> bool {
        self.with_batch(|batch| Ok(batch.reuse(id))).unwrap_or(false)
    }
}

impl ObjectSource for RestoreObjects {
    fn get(&self, id: &BlobId, limit: u64) -> io::Result<Vec<u8>> {
        match self.source.get(id, limit) {
            // It may be among what was just put.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.commit()? => {
                self.source.get(id, limit)
            }
            found => found,
        }
    }

    fn read(&self, id: &BlobId, out: &mut dyn Write) -> io::Result<()> {
        match self.source.read(id, out) {
            // Nothing was written of one that is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.commit()? => {
                self.source.read(id, out)
            }
            found => found,
        }
    }
}
