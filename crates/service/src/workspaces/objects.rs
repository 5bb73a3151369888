//! Objects of workspaces in the blob store: what a capture puts goes into a batch, what others need comes from packs and blobs.

use std::io::{self, Read, Write};

use rekindle_domain::blob_id::BlobId;
use rekindle_store::blobs::{Batch, BlobError, Blobs};
use rekindle_workspace::{ObjectSink, ObjectSource};

/// Returns an error of the blob store as one of input and output, with its kind where that matters.
pub(super) fn io_error(error: BlobError) -> io::Error {
    match error {
        BlobError::Missing(_) => io::Error::new(io::ErrorKind::NotFound, error),
        // A sink that the disk has no room for ends the capture with that reason.
        BlobError::Io(error) => io::Error::new(error.source.kind(), error),
        error => io::Error::other(error),
    }
}

/// A batch that takes in a capture.
pub(super) struct BatchSink<'a>(pub(super) &'a Batch);

impl ObjectSink for BatchSink<'_> {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        self.0.put(bytes).map_err(io_error)
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        self.0.put_reader(content).map_err(io_error)
    }

    fn reuse(&self, id: &BlobId) -> bool {
        // One that cannot be looked up is put again.
        self.0.reuse(id).unwrap_or(false)
    }

    fn reuse_all(&self, ids: &[BlobId]) -> bool {
        self.0.reuse_all(ids).unwrap_or(false)
    }
}

/// The blob store, read.
pub(crate) struct BlobSource(pub(crate) Blobs);

impl ObjectSource for BlobSource {
    fn get(&self, id: &BlobId, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Limited { bytes: Vec::new(), limit };
        self.read(id, &mut bytes)?;
        Ok(bytes.bytes)
    }

    fn read(&self, id: &BlobId, out: &mut dyn Write) -> io::Result<()> {
        self.0.copy_to(id, out).map(drop).map_err(io_error)
    }
}

/// Bytes in memory, up to a limit.
struct Limited {
    bytes: Vec<u8>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() as u64 + more.len() as u64 > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
