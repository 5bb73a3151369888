//! Small loops over [`Disk`] that everyone needs: whole reads, whole writes, atomic replacement.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Disk, DiskFile, OpenMode, is_out_of_descriptors};
use crate::layout::TEMPORARY_SUFFIX;

/// How much is read and written at a time.
const CHUNK: usize = 1 << 20;

/// Tells whether a call failed because something ran out that comes back: room on the disk, descriptors, memory. Whoever
/// meets that waits; nothing is wrong with the file.
pub fn is_shortage(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::OutOfMemory];
    kinds.contains(&error.kind()) || is_out_of_descriptors(error)
}

/// Takes the lock of a file as soon as whoever has it lets go, but waits no longer than this; tells whether it was taken.
pub fn lock_within(file: &dyn DiskFile, within: Duration) -> io::Result<bool> {
    /// Locks that are waited for are held for a moment.
    const PAUSE: Duration = Duration::from_millis(2);
    let begin = Instant::now();
    while !file.try_lock()? {
        if begin.elapsed() >= within {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// Returns what was found; none if there is no such file or directory.
pub fn if_exists<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes all of `buf`, going on after short writes.
///
/// On an error some prefix may have been written: the caller owns the clean-up.
pub fn write_all_at(file: &dyn DiskFile, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.write_at(buf, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => {
                buf = &buf[n..];
                offset += n as u64;
            }
        }
    }
    Ok(())
}

/// Reads until `buf` is full or the file ends; returns how much was read.
pub fn read_up_to(file: &dyn DiskFile, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Fills `buf` or fails with `UnexpectedEof`.
pub fn read_exact_at(file: &dyn DiskFile, buf: &mut [u8], offset: u64) -> io::Result<()> {
    if read_up_to(file, buf, offset)? < buf.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Writes a stretch again as it is, so that the next sync makes it durable.
///
/// What is read may be in the page cache alone: after a failed write-back the kernel calls such pages clean,
/// and a sync would pass over them. Written again, they are not.
pub fn refresh(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    copy(file, file, from, to)
}

/// Copies a stretch of one file to the same place of another.
pub fn copy(source: &dyn DiskFile, target: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK.min(to.saturating_sub(from) as usize)];
    let mut at = from;
    while at < to {
        let n = (to - at).min(CHUNK as u64) as usize;
        read_exact_at(source, &mut buffer[..n], at)?;
        write_all_at(target, &buffer[..n], at)?;
        at += n as u64;
    }
    Ok(())
}

/// Reads a whole small file; one longer than `limit` is an error, so that rubbish cannot fill the memory.
pub fn read_all(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let len = file.len_at_open()?;
    if len > limit {
        let message = format!("file of {len} bytes is longer than the limit of {limit}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let mut bytes = vec![0; len as usize];
    let read = read_up_to(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Replaces a file atomically and durably: temporary file, sync, rename, sync of the directory.
///
/// A crash leaves the old file or the new one whole, and perhaps a `.tmp` beside it that the next call
/// overwrites.
pub fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_through(disk, &temporary(path), path, bytes)
}

/// The same, through a file of this name: for what several may write at the same moment.
pub(crate) fn replace_through(
    disk: &dyn Disk,
    temporary: &Path,
    path: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    let written = (|| {
        let file = disk.open(temporary, OpenMode::Replace)?;
        write_all_at(&*file, bytes, 0)?;
        file.sync()?;
        disk.rename(temporary, path)
    })();
    if let Err(error) = written {
        // Best effort: on a full disk the half-written file would keep the room it took.
        let _ = disk.remove_file(temporary);
        return Err(error);
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/")))
}

/// Returns the name under which a file is written before it gets its own.
pub(crate) fn temporary(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    name.into()
}
