//! File operations of the holder and its client: files for their owner alone, durable names, and errors that name the path.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An operation on a file or directory that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {path}")]
pub struct PathError {
    /// What was being done.
    pub doing: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

/// Adds to an error what was being done, and to what.
pub(crate) trait AtPath<T> {
    fn at_path(self, doing: &'static str, path: &Path) -> Result<T, PathError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at_path(self, doing: &'static str, path: &Path) -> Result<T, PathError> {
        self.map_err(|source| PathError { doing, path: path.to_owned(), source })
    }
}

/// Returns what was found; none if there is no such file or directory.
pub(crate) fn if_exists<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes an empty file for its owner alone, whatever was in it before.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Opens a file as it is, or makes it for its owner alone.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
