//! Snapshot, token index and the state of the tasks as files: written atomically, read with suspicion. They are caches: whatever is
//! wrong with one costs a longer replay, except a newer version, which is left alone.

use std::io;
use std::path::Path;

use rekindle_domain::session::{SNAPSHOT_VERSION, SessionState};
use rekindle_domain::task::{TASKS_VERSION, TasksState};
use rekindle_domain::token::{TOKEN_INDEX_VERSION, TokenIndex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, if_exists, read_all, replace};
use crate::error::LoadError;

/// Largest cache file that is read: a state holds no messages, so anything near this is rubbish.
pub(crate) const MAX_CACHE: u64 = 64 << 20;

/// A file that can be rebuilt from the log.
pub(crate) trait Cache: Serialize + DeserializeOwned {
    /// The newest version this code knows.
    const VERSION: u32;
    /// The version it was written with.
    fn version(&self) -> u32;
}

impl Cache for SessionState {
    const VERSION: u32 = SNAPSHOT_VERSION;
    fn version(&self) -> u32 {
        self.version
    }
}

impl Cache for TokenIndex {
    const VERSION: u32 = TOKEN_INDEX_VERSION;
    fn version(&self) -> u32 {
        self.version
    }
}

impl Cache for TasksState {
    const VERSION: u32 = TASKS_VERSION;
    fn version(&self) -> u32 {
        // Of any other it is not read at all.
        TASKS_VERSION
    }
}

/// What was found at a cache's path.
#[derive(Debug)]
pub(crate) enum Cached<T> {
    Good(T),
    Missing,
    Unreadable,
}

/// Reads a cache. Only a newer version is an error: an older program must not misread or overwrite it.
pub(crate) fn read<T: Cache>(disk: &dyn Disk, path: &Path) -> Result<Cached<T>, LoadError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bytes = match if_exists(read_all(disk, path, MAX_CACHE)) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Cached::Missing),
        Err(_) => return Ok(Cached::Unreadable),
    };
    let newer = |found| LoadError::Newer { path: path.to_owned(), found, known: T::VERSION };
    match serde_json::from_slice::<T>(&bytes) {
        // A newer version may still parse: what it means has changed all the same.
        Ok(cache) if cache.version() > T::VERSION => Err(newer(cache.version())),
        Ok(cache) => Ok(Cached::Good(cache)),
        Err(_) => match serde_json::from_slice::<Versioned>(&bytes) {
            Ok(Versioned { version }) if version > T::VERSION => Err(newer(version)),
            Ok(_) | Err(_) => Ok(Cached::Unreadable),
        },
    }
}

/// Replaces a cache atomically and durably.
pub(crate) fn write<T: Cache>(disk: &dyn Disk, path: &Path, cache: &T) -> io::Result<u64> {
    let bytes = serde_json::to_vec(cache).map_err(io::Error::other)?;
    replace(disk, path, &bytes)?;
    Ok(bytes.len() as u64)
}
