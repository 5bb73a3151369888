//! Compressing a log to which nothing is added any more: what was written is read again and compared before it counts.

use std::io;
use std::path::Path;

use super::compressed::{CompressedFile, write_frames};
use super::cursor::Cursor;
use super::reader::LogReader;
use crate::disk::{Disk, read_exact_at, temporary};

/// How much is compared at a time.
const CHUNK: usize = 128 << 10;

/// Writes a log compressed, whole and durably, beside itself; what was written is read again and compared.
pub(crate) fn compress(disk: &dyn Disk, log: &LogReader, path: &Path) -> io::Result<()> {
    let temporary = temporary(path);
    let written = write_frames(disk, &mut log.stored(Cursor::START, log.end()), &temporary).and_then(|()| {
        compare(disk, log, &temporary)?;
        disk.rename(&temporary, path)
    });
    if let Err(error) = written {
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/")))
}

/// Refuses what does not read as the log does.
fn compare(disk: &dyn Disk, log: &LogReader, path: &Path) -> io::Result<()> {
    let (written, damage) = CompressedFile::open(disk, path)?;
    let differs = || io::Error::new(io::ErrorKind::InvalidData, "the log reads differently when compressed");
    if damage.is_some() || written.len() != log.len() {
        return Err(differs());
    }
    let (mut at, mut ours) = (0, vec![0; CHUNK]);
    while at < log.len() {
        let theirs = log.bytes(at, CHUNK)?;
        let ours = &mut ours[..theirs.len()];
        read_exact_at(&written, ours, at)?;
        if theirs.is_empty() || *ours != *theirs {
            return Err(differs());
        }
        at += theirs.len() as u64;
    }
    Ok(())
}
