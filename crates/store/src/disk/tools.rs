//! Small loops over [`Disk`] that everyone needs: whole reads, whole writes, atomic replacement.

use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile, OpenMode};

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

/// Reads a whole small file; one longer than `limit` is an error, so that rubbish cannot fill the memory.
pub fn read_all(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let len = file.stat()?.len;
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
    let temporary = temporary_beside(path);
    let written = (|| {
        let file = disk.open(&temporary, OpenMode::Replace)?;
        write_all_at(&*file, bytes, 0)?;
        file.sync()?;
        disk.rename(&temporary, path)
    })();
    if let Err(error) = written {
        // Best effort: on a full disk the half-written file would keep the room it took.
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/")))
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}
