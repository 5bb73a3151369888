//! Bringing a lagging log up to date: in place where what stands in the file is right, else a new file from
//! what is left of the old one and what the write-ahead log has.

use std::io;
use std::sync::Arc;

use rekindle_domain::id::StreamId;

use crate::disk::{DiskFile, OpenMode, copy, temporary, write_all_at};
use crate::home_files::HomeFiles;
use crate::lagging::Lag;
use crate::log::LogForm;
use crate::redo::{Completion, redo};
use crate::wal::scan::Tail;

/// Writes what a log lacks behind what it has, and returns it open. What is written is as durable as the write-ahead log makes
/// it: the next checkpoint syncs it through this descriptor.
pub(super) fn in_place(home: &HomeFiles, stream: StreamId, lag: &Lag) -> io::Result<Arc<dyn DiskFile>> {
    let log = match &lag.file {
        // Whatever stands behind the place in it was ours.
        Some(log) => log.clone(),
        None => {
            let mode = if lag.keep == 0 { OpenMode::Create } else { OpenMode::Write };
            let log: Arc<dyn DiskFile> = home.disk.open(&home.stream_log(stream), mode)?.into();
            if log.stat()?.len != lag.keep {
                return Err(io::Error::other("the log was changed by someone else"));
            }
            log
        }
    };
    write_all_at(&*log, &lag.lines, lag.keep)?;
    log.set_len(lag.keep + lag.lines.len() as u64)?;
    Ok(log)
}

/// Completes a log as opening the home would have, and makes it durable.
pub(super) fn redo_late(home: &HomeFiles, stream: StreamId, tail: &Tail<'_>) -> io::Result<()> {
    match redo(home, stream, tail)? {
        Completion::Damaged(damage) => Err(io::Error::other(damage.to_string())),
        Completion::Removed | Completion::SetAside => Ok(()),
        // What is compressed is on disk.
        Completion::Whole if home.stream_reader(stream)?.form() == LogForm::Compressed => Ok(()),
        Completion::Whole | Completion::Refilled { .. } | Completion::Repaired { .. } => {
            home.disk.open(&home.stream_log(stream), OpenMode::Write)?.sync()
        }
    }
}

/// Writes the log anew and returns it open. The old file is replaced only when the new one is on home.disk.
pub(super) fn rewrite(
    home: &HomeFiles,
    stream: StreamId,
    lag: &Lag,
    tail: &Tail<'_>,
) -> io::Result<Arc<dyn DiskFile>> {
    let whole = lag.keep + lag.lines.len() as u64;
    let path = home.stream_log(stream);
    let temporary = temporary(&path);
    let written = (|| {
        let file = home.disk.open(&temporary, OpenMode::Replace)?;
        let base = tail.appends.first().map_or(whole, |append| append.offset);
        if base > 0 {
            // The open log outlives its name; only without one is the name all there is.
            match &lag.file {
                Some(log) => copy(&**log, &*file, 0, base)?,
                None => copy(&*home.disk.open(&path, OpenMode::Read)?, &*file, 0, base)?,
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
        if end != whole {
            return Err(io::Error::other("the write-ahead log does not reach the end of the log"));
        }
        file.sync()?;
        home.disk.rename(&temporary, &path)?;
        home.disk.sync_dir(path.parent().unwrap_or(home.home()))?;
        Ok(file.into())
    })();
    if written.is_err() {
        let _ = home.disk.remove_file(&temporary);
    }
    written
}
