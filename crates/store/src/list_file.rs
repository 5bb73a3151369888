//! A list that is one small file, replaced whole, with a lock of its own: whoever owns the home reads it, and commands and daemons change
//! it one after the other.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, DiskFile, OpenMode, if_exists, lock_within, read_all, replace};
use crate::error::{AtPath, PathError};

/// How long another process may take to change a list: it has one small file to write.
const BUSY: Duration = Duration::from_secs(5);

/// Why a list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A newer version wrote it; it is left alone.
    #[error("{path} has version {found}, newer than version {known} which this Rekindle knows")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// It is no such list; it is left alone.
    #[error("{path} is not a {what}: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// Another process is changing it and does not get done.
    #[error("another process has locked {0} and does not release it")]
    Busy(PathBuf),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// A list: where it is and what it is.
#[derive(Debug)]
pub(crate) struct ListFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// The lock of whoever changes it.
    pub(crate) lock: PathBuf,
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// The newest version of it that is known.
    pub(crate) version: u32,
    /// More bytes than the longest list has that is ever written.
    pub(crate) most: u64,
}

impl ListFile {
    /// Reads the list; without a file it is empty.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self, disk: &dyn Disk) -> Result<T, ListError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let path = &self.path;
        let found = if_exists(read_all(disk, path, self.most)).at_path("read", path)?;
        let Some(bytes) = found else { return Ok(T::default()) };
        let damaged = |error: serde_json::Error| ListError::Damaged {
            path: path.clone(),
            what: self.what,
            detail: error.to_string(),
        };
        let Version { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if version > self.version {
            return Err(ListError::Newer { path: path.clone(), found: version, known: self.version });
        }
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// Changes the list: read, changed and replaced while nobody else does. A crash leaves the old list or the new one. What
    /// `change` refuses is not written.
    pub(crate) fn change<T: Serialize + DeserializeOwned + Default, R, E>(
        &self,
        disk: &dyn Disk,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<Result<R, E>, ListError> {
        let _lock = self.locked(disk)?;
        let mut list = self.read(disk)?;
        let changed = match change(&mut list) {
            Ok(changed) => changed,
            refused => return Ok(refused),
        };
        let written =
            serde_json::to_vec(&list).map_err(Into::into).and_then(|bytes| replace(disk, &self.path, &bytes));
        written.at_path("write", &self.path)?;
        Ok(Ok(changed))
    }

    fn locked(&self, disk: &dyn Disk) -> Result<Box<dyn DiskFile>, ListError> {
        let path = &self.lock;
        let locked =
            disk.open(path, OpenMode::Create).and_then(|file| Ok((lock_within(&*file, BUSY)?, file)));
        match locked.at_path("lock", path)? {
            (true, file) => Ok(file),
            (false, _) => Err(ListError::Busy(path.clone())),
        }
    }
}
