//! A private copy of the holder's executable, named by its content: an update never changes what a holder runs.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::file_ops::{AtPath, PathError, sync_dir};
use crate::journal::hex;

/// The file's name below the hash, so that lists of processes tell what it is.
const NAME: &str = "rekindle-holder";

/// An executable that will not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Where it is.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// Why there is no private copy.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The original cannot be read.
    #[error("cannot read {path}: install rekindle-holder beside rekindle")]
    Source {
        /// The original.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The copy cannot be made.
    #[error(transparent)]
    Copy(#[from] PathError),
}

/// Finds the private copy of an executable in `bin_dir`, or makes it. Several may do so at once: each brings a
/// whole copy of its own into place, and they are all the same.
pub fn install_executable(source: &Path, bin_dir: &Path) -> Result<Executable, InstallError> {
    // Read once, so that the name is that of the very bytes which are copied.
    let bytes =
        std::fs::read(source).map_err(|error| InstallError::Source { path: source.into(), source: error })?;
    let sha256 = sha256(&bytes);
    let dir = bin_dir.join(&sha256);
    let path = dir.join(NAME);
    if !is_intact(&path, &sha256) {
        copy(&bytes, &dir, &path).at_path("make a copy of the holder at", &path)?;
    }
    Ok(Executable { path, sha256 })
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Tells whether a copy is what its name says and may be run by us, and by nobody else be changed.
fn is_intact(path: &Path, hash: &str) -> bool {
    let ours = std::fs::symlink_metadata(path).is_ok_and(|there| {
        let uid = rustix::process::geteuid().as_raw();
        there.is_file() && there.uid() == uid && there.mode() & 0o777 == 0o500
    });
    ours && std::fs::read(path).is_ok_and(|bytes| sha256(&bytes) == hash)
}

fn copy(bytes: &[u8], dir: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut word = [0; 8];
    getrandom::fill(&mut word).map_err(io::Error::other)?;
    let temporary = dir.join(format!(".{}.tmp", hex(&word)));
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o500).open(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
    if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    sync_dir(dir)?;
    dir.parent().map_or(Ok(()), sync_dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_copy_is_named_by_its_content_and_used_again() {
        let home = tempfile::tempdir().expect("a directory");
        let (source, bin) = (home.path().join("holder"), home.path().join("bin"));
        std::fs::write(&source, "one").expect("written");
        let first = install_executable(&source, &bin).expect("installed");
        assert_eq!(first.path, bin.join(&first.sha256).join(NAME));
        assert_eq!(first.sha256, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
        let inode = |path: &Path| std::fs::metadata(path).expect("there").ino();
        let before = inode(&first.path);
        assert_eq!(install_executable(&source, &bin).expect("installed"), first);
        assert_eq!(inode(&first.path), before, "not made again");

        std::fs::write(&source, "two").expect("written");
        let second = install_executable(&source, &bin).expect("installed");
        assert_ne!(second, first);
        assert_eq!(std::fs::read(&first.path).expect("still there"), b"one");
    }

    #[test]
    fn a_copy_that_is_not_what_its_name_says_is_replaced() {
        let home = tempfile::tempdir().expect("a directory");
        let (source, bin) = (home.path().join("holder"), home.path().join("bin"));
        std::fs::write(&source, "one").expect("written");
        let Executable { path, .. } = install_executable(&source, &bin).expect("installed");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("set");
        std::fs::write(&path, "other").expect("written");
        install_executable(&source, &bin).expect("installed");
        assert_eq!(std::fs::read(&path).expect("there"), b"one");
        assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o500);
    }

    #[test]
    fn many_at_once_make_one_and_leave_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        let (source, bin) = (home.path().join("holder"), home.path().join("bin"));
        std::fs::write(&source, vec![7; 1 << 20]).expect("written");
        let all: Vec<Executable> = std::thread::scope(|scope| {
            let install = || install_executable(&source, &bin).expect("installed");
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(install)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        let dir = all[0].path.parent().expect("a directory");
        assert_eq!(std::fs::read_dir(dir).expect("a list").count(), 1);
    }

    #[test]
    fn a_missing_original_is_told() {
        let home = tempfile::tempdir().expect("a directory");
        let missing = install_executable(&home.path().join("none"), home.path());
        assert!(matches!(missing, Err(InstallError::Source { .. })));
    }
}
