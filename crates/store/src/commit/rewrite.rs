//! Bringing a session log that fell behind up to date: a new file from what is left of the old one and what
//! the write-ahead log has.

use std::io;

use super::live::Live;
use crate::disk::{DiskFile, OpenMode, SharedDisk, copy, write_all_at};
use crate::layout::{Layout, TEMPORARY_SUFFIX};
use crate::wal::scan;
use crate::wal::writer::{Wal, WalFailure};

/// Writes the log anew and returns it open. The old file is replaced only when the new one is on disk.
pub(super) fn rewrite(
    disk: &SharedDisk,
    layout: &Layout,
    wal: &mut Wal,
    live: &Live,
) -> io::Result<Box<dyn DiskFile>> {
    // What is read back below must be what is on disk.
    wal.sync().map_err(|failure| match failure {
        WalFailure::Refused(error) | WalFailure::Unknown(error) => error,
    })?;
    let session = live.state.id;
    let scan = scan::scan(&**disk, layout).map_err(io::Error::other)?;
    let tail = scan.of_session(session);
    let path = layout.log(session);
    let temporary = path.with_extension(format!("jsonl{TEMPORARY_SUFFIX}"));
    let written = (|| {
        let file = disk.open(&temporary, OpenMode::Replace)?;
        let base = tail.appends.first().map_or(live.state.log_offset, |append| append.offset);
        if base > 0 {
            // The open log outlives its name; only without one is the name all there is.
            match live.log() {
                Some(log) => copy(log, &*file, 0, base)?,
                None => copy(&*disk.open(&path, OpenMode::Read)?, &*file, 0, base)?,
            }
        }
        let mut end = base;
        for append in &tail.appends {
            if append.offset != end {
                return Err(io::Error::other("the write-ahead log has a gap"));
            }
            write_all_at(&*file, append.lines, end)?;
            end += append.lines.len() as u64;
        }
        if end != live.state.log_offset {
            return Err(io::Error::other("the write-ahead log does not reach the end of the log"));
        }
        file.sync()?;
        disk.rename(&temporary, &path)?;
        disk.sync_dir(&layout.sessions())?;
        Ok(file)
    })();
    if written.is_err() {
        let _ = disk.remove_file(&temporary);
    }
    written
}
