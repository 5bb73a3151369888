//! Two files read as one: the beginning of the first, and the second behind it. Nothing is copied, and nothing can be written.

use std::io;

use crate::disk::{DiskFile, ReadOnlyFile, Stat};

/// The beginning of a file, and another behind it.
pub(super) struct JoinedFile {
    pub(super) front: Box<dyn DiskFile>,
    /// Where the second one takes over.
    pub(super) end: u64,
    pub(super) back: Box<dyn DiskFile>,
}

impl ReadOnlyFile for JoinedFile {
    const REASON: &str = "a history is only read";

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.end.checked_sub(offset).filter(|left| *left > 0) {
            None => self.back.read_at(buf, offset - self.end),
            Some(left) => {
                let len = usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len()));
                match self.front.read_at(&mut buf[..len], offset)? {
                    // It was longer when it was opened: what is behind must not be taken for what is missing.
                    0 if len > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    read => Ok(read),
                }
            }
        }
    }

    fn stat(&self) -> io::Result<Stat> {
        self.back.stat().map(|stat| Stat { len: stat.len.saturating_add(self.end), ..stat })
    }
}
