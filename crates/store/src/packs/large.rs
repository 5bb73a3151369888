//! Large contents: a file of their own each, written and read in pieces, never held in memory.

use std::io::{self, Read, Write};

use rekindle_domain::blob_id::BlobId;

use super::compress::LEVEL;
use super::table::Packs;
use super::writer::Temporary;
use crate::blob_error::{BlobError, MAX_CONTENT};
use crate::disk::{DiskFile, write_all_at};
use crate::error::AtPath;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

/// How much is written at a time.
const BUFFER: usize = 1 << 20;

/// A large content that is durable and has no name yet.
pub(crate) struct Large {
    pub(crate) id: BlobId,
    /// Its plain size.
    pub(crate) size: u64,
    /// Its size on disk.
    pub(crate) stored: u64,
    pub(crate) temporary: Temporary,
    file: Box<dyn DiskFile>,
}

impl Large {
    /// Compresses a content into a temporary file.
    pub(crate) fn write(packs: &Packs, beginning: &[u8], rest: &mut dyn Read) -> Result<Large, BlobError> {
        let (temporary, file) = Temporary::create(packs, ".blob")?;
        let mut hasher = blake3::Hasher::new();
        let mut size = 0;
        let written = {
            let sink = FileWriter { file: &*file, at: 0, buffer: Vec::with_capacity(BUFFER) };
            let mut encoder =
                zstd::stream::write::Encoder::new(sink, LEVEL).at_path("write", temporary.path())?;
            let mut add = |bytes: &[u8]| -> Result<(), BlobError> {
                size += bytes.len() as u64;
                if size > MAX_CONTENT {
                    return Err(BlobError::ContentTooLarge);
                }
                hasher.update(bytes);
                Ok(encoder.write_all(bytes).at_path("write", temporary.path())?)
            };
            add(beginning)?;
            let mut chunk = vec![0; CHUNK];
            loop {
                match rest.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => add(&chunk[..read])?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(BlobError::Source(error)),
                }
            }
            encoder.finish().and_then(FileWriter::finish).at_path("write", temporary.path())?
        };
        let id = BlobId::from_bytes(*hasher.finalize().as_bytes());
        Ok(Large { id, size, stored: written, temporary, file })
    }

    /// Makes its bytes durable.
    pub(crate) fn sync(self) -> Result<(BlobId, Temporary), BlobError> {
        self.file.sync().at_path("sync", self.temporary.path())?;
        Ok((self.id, self.temporary))
    }
}

/// A writer to the end of a file, in large pieces.
struct FileWriter<'a> {
    file: &'a dyn DiskFile,
    at: u64,
    buffer: Vec<u8>,
}

impl FileWriter<'_> {
    fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        Ok(self.at)
    }
}

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        write_all_at(self.file, &self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A reader of a file from its beginning.
struct FileReader<'a> {
    file: &'a dyn DiskFile,
    at: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Why a content could not be handed over.
pub(crate) enum CopyError {
    /// It is not what its name says.
    Damaged(String),
    /// Whoever takes it failed.
    Sink(io::Error),
}

/// Unpacks a blob's file into a writer in pieces, and checks it against its name at the end: until then what was handed over
/// proves nothing. Returns its size.
pub(crate) fn copy_verified(
    file: &dyn DiskFile,
    id: &BlobId,
    sink: &mut dyn Write,
) -> Result<u64, CopyError> {
    let damaged = |error: io::Error| CopyError::Damaged(error.to_string());
    let reader = io::BufReader::with_capacity(CHUNK, FileReader { file, at: 0 });
    let mut decoder = zstd::stream::read::Decoder::with_buffer(reader).map_err(damaged)?;
    let (mut hasher, mut size, mut chunk) = (blake3::Hasher::new(), 0_u64, vec![0; CHUNK]);
    loop {
        let read = match decoder.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Err(damaged(error)),
        };
        size += read as u64;
        if size > MAX_CONTENT {
            return Err(CopyError::Damaged(format!("it unpacks to more than {MAX_CONTENT} bytes")));
        }
        hasher.update(&chunk[..read]);
        sink.write_all(&chunk[..read]).map_err(CopyError::Sink)?;
    }
    if hasher.finalize().as_bytes() != id.as_bytes() {
        return Err(CopyError::Damaged("its bytes do not match the hash in its name".into()));
    }
    Ok(size)
}
