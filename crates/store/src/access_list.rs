//! The list of access tokens as a file: one small file, replaced whole, with a lock of its own. Whoever owns the home reads
//! it; commands change it, with or without a daemon. Beside it stands when tokens were last used, which is a cache.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rekindle_domain::access::{ACCESS_VERSION, AccessList};
use rekindle_domain::id::AccessId;
use rekindle_domain::time::Timestamp;
use serde::Deserialize;

use crate::disk::{Disk, DiskFile, OpenMode, if_exists, lock_within, read_all, replace};
use crate::error::{AtPath, PathError};
use crate::layout::Layout;

/// More than the longest list that is ever written: some hundred bytes a token.
const MOST: u64 = 1 << 20;

/// How long another command may take to change the list: it has one small file to write.
const BUSY: Duration = Duration::from_secs(5);

/// Why the list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A newer version wrote it; it is left alone.
    #[error("{path} has version {found}, newer than version {ACCESS_VERSION} which this Rekindle knows")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It is no list of access tokens; it is left alone.
    #[error("{path} is no list of access tokens: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Another command is changing it and does not get done.
    #[error("another process has {0} and does not let go of it")]
    Busy(PathBuf),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// By which it is known that the file is another one than before; none if there is none.
pub type Stamp = Option<((u64, u64), u64, SystemTime)>;

/// Looks at the file without reading it.
pub fn stamp(disk: &dyn Disk, layout: &Layout) -> Stamp {
    disk.stat(&layout.access()).ok().map(|stat| (stat.identity, stat.len, stat.modified))
}

/// Reads the list; without a file it is empty.
pub fn read(disk: &dyn Disk, layout: &Layout) -> Result<AccessList, AccessError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let path = layout.access();
    let found = if_exists(read_all(disk, &path, MOST)).at_path("read", &path)?;
    let Some(bytes) = found else { return Ok(AccessList::default()) };
    let damaged =
        |error: serde_json::Error| AccessError::Damaged { path: layout.access(), detail: error.to_string() };
    let Version { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if version > ACCESS_VERSION {
        return Err(AccessError::Newer { path, found: version });
    }
    serde_json::from_slice(&bytes).map_err(damaged)
}

/// Changes the list: read, changed and replaced while nobody else does. A crash leaves the old list or the new one. What
/// `change` refuses is not written.
pub fn change<T, E>(
    disk: &dyn Disk,
    layout: &Layout,
    change: impl FnOnce(&mut AccessList) -> Result<T, E>,
) -> Result<Result<T, E>, AccessError> {
    let _lock = lock(disk, layout)?;
    let mut list = read(disk, layout)?;
    let changed = match change(&mut list) {
        Ok(changed) => changed,
        refused => return Ok(refused),
    };
    let path = layout.access();
    let written =
        serde_json::to_vec(&list).map_err(Into::into).and_then(|bytes| replace(disk, &path, &bytes));
    written.at_path("write", &path)?;
    Ok(Ok(changed))
}

fn lock(disk: &dyn Disk, layout: &Layout) -> Result<Box<dyn DiskFile>, AccessError> {
    let path = layout.access_lock();
    let locked = disk.open(&path, OpenMode::Create).and_then(|file| Ok((lock_within(&*file, BUSY)?, file)));
    match locked.at_path("lock", &path)? {
        (true, file) => Ok(file),
        (false, _) => Err(AccessError::Busy(path)),
    }
}

/// When tokens were last used.
pub type Used = BTreeMap<AccessId, Timestamp>;

/// Reads when tokens were last used; what cannot be read is not known.
pub fn read_used(disk: &dyn Disk, layout: &Layout) -> Used {
    let bytes = read_all(disk, &layout.access_used(), MOST).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Keeps when tokens were last used.
pub fn write_used(disk: &dyn Disk, layout: &Layout, used: &Used) -> io::Result<()> {
    replace(disk, &layout.access_used(), &serde_json::to_vec(used)?)
}
