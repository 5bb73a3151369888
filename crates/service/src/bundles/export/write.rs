//! A bundle is written: the table of contents, then every member as it was gathered, and the hash of all bytes behind it.

use std::io::{self, Read, Write};

use rekindle_domain::bundle::{CONTENTS, Contents, Member};

use super::super::archive::{END, Hashing, header, padding, trailer};
use super::super::{BundleError, Progress, Watcher};
use super::gather::{AtOffset, Gathered, Source};

/// Fast, and good enough for text.
const LEVEL: i32 = 3;

/// How often progress is told, in bytes.
const STEP: u64 = 1 << 20;

impl Gathered<'_> {
    /// Writes everything, compressed, with the hash behind it; returns how many bytes that took.
    pub(super) fn write(
        &self,
        contents: &Contents,
        sink: &mut (dyn Write + Send),
        watcher: Watcher<'_>,
    ) -> Result<u64, BundleError> {
        let unwritten = BundleError::unwritten;
        let table = contents.to_bytes().map_err(|error| unwritten(error.into()))?;
        let total = contents.members.iter().map(|member| member.size).sum();
        let mut encoder = zstd::Encoder::new(Hashing::new(sink), LEVEL).map_err(unwritten)?;
        encoder.include_checksum(true).map_err(unwritten)?;
        // Compressed beside whoever reads and hashes what is written.
        let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
        encoder.multithread(workers as u32).map_err(unwritten)?;
        let mut out = Out { encoder, done: 0, told: 0, total, watcher };
        out.begin(CONTENTS, table.len() as u64).map_err(unwritten)?;
        out.encoder.write_all(&table).map_err(unwritten)?;
        out.pad(table.len() as u64).map_err(unwritten)?;
        for (member, source) in &self.members {
            self.write_member(member, source, &mut out)?;
        }
        out.encoder.write_all(&END).map_err(unwritten)?;
        let hashed = out.encoder.finish().map_err(unwritten)?;
        let trailer = trailer(&hashed.hash());
        hashed.inner.write_all(&trailer).and_then(|()| hashed.inner.flush()).map_err(unwritten)?;
        Ok(hashed.count + trailer.len() as u64)
    }

    fn write_member(
        &self,
        member: &Member,
        source: &Source,
        out: &mut Out<'_, '_>,
    ) -> Result<(), BundleError> {
        let changed = |why: String| BundleError::Member { name: member.name.clone(), why };
        out.begin(&member.name.to_string(), member.size).map_err(BundleError::unwritten)?;
        match source {
            Source::Blob(id) => {
                let size = self.blobs.copy_to(id, out)?;
                if size != member.size {
                    return Err(changed(format!("it has {size} bytes here instead of {}", member.size)));
                }
            }
            Source::Bytes(bytes) => out.copy(&mut &bytes[..], member)?,
            Source::File(file, size) => out.copy(&mut AtOffset::new(&**file, *size), member)?,
            Source::Base(_) | Source::Log(_) | Source::Ledger(_) => {
                if let Some(mut stretch) = self.stretch(source) {
                    out.copy(&mut stretch, member)?;
                }
            }
        }
        out.pad(member.size).map_err(BundleError::unwritten)
    }
}

/// A bundle that is being written.
struct Out<'a, 's> {
    encoder: zstd::Encoder<'static, Hashing<&'s mut (dyn Write + Send)>>,
    done: u64,
    told: u64,
    total: u64,
    watcher: Watcher<'a>,
}

impl Out<'_, '_> {
    fn begin(&mut self, name: &str, size: u64) -> io::Result<()> {
        self.encoder.write_all(&header(name, size)?)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        self.encoder.write_all(&END[..padding(size)])
    }

    /// Copies a member, which must still be what it was when the table was made.
    fn copy(&mut self, bytes: &mut dyn Read, member: &Member) -> Result<(), BundleError> {
        let mut hashing = Hashing::new(bytes);
        io::copy(&mut hashing, self).map_err(BundleError::unwritten)?;
        if (hashing.count, hashing.id()) != (member.size, member.hash) {
            let why = "it was changed while it was exported".to_owned();
            return Err(BundleError::Member { name: member.name.clone(), why });
        }
        Ok(())
    }
}

impl Write for Out<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.encoder.write(bytes)?;
        self.done += written as u64;
        if self.done - self.told >= STEP {
            self.told = self.done;
            (self.watcher)(Progress { doing: "exporting", done: self.done, total: self.total });
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}
