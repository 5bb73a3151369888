//! Taking a dead holder's lock: proof that it is dead, and that nobody else touches its directory meanwhile.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::dir::{HolderDir, LockNote};
use crate::file_ops::{AtPath, PathError, if_exists, open_or_create};

/// An inspection keeps the lock for microseconds only; who still has it after this really has it.
const WAIT: Duration = Duration::from_millis(100);

/// Between two tries; each is one system call.
const PAUSE: Duration = Duration::from_millis(2);

/// No note is longer than this: a pid, a boot id, a holder id and two numbers.
const MOST_NOTE: u64 = 16 << 10;

/// A holder's lock in our hand. While we have it there is no holder, and none can begin.
#[derive(Debug)]
pub struct DirLock {
    /// Whose lock it is.
    pub(super) dir: HolderDir,
    /// What the last holder wrote into it.
    pub(super) note: Option<LockNote>,
    /// The directory is a copy: what its files say of processes is about those of another home.
    pub(super) copied: bool,
    /// Closing it lets the lock go; it is closed on exec, so no child keeps it.
    _file: File,
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody has it: there is a holder, or someone else is at work here.
    #[error(
        "{0} is held: the holder is alive, so connect to it, or wait for the process that is working in its directory"
    )]
    Held(PathBuf),
    /// There is no such directory.
    #[error("{0} does not exist: there is no holder to take over")]
    Missing(PathBuf),
    /// It could not be opened or locked.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl DirLock {
    /// Takes the lock of a holder that is dead; makes it where the holder never came so far.
    pub fn take(dir: &HolderDir) -> Result<DirLock, LockError> {
        let path = dir.lock();
        let deadline = Instant::now() + WAIT;
        loop {
            let opened = if_exists(open_or_create(&path)).at_path("lock", &path)?;
            let file = opened.ok_or_else(|| LockError::Missing(dir.path().into()))?;
            match file.try_lock() {
                // What we locked may have been removed before we had it: then the lock is on nothing.
                Ok(()) if is_at(&file, &path).at_path("lock", &path)? => {
                    let note = read_note(&file);
                    let copied = is_copied(&file, note.as_ref()).at_path("lock", &path)?;
                    return Ok(DirLock { dir: dir.clone(), note, copied, _file: file });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => Err(error).at_path("lock", &path)?,
            }
            if Instant::now() >= deadline {
                return Err(LockError::Held(path));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn is_at(file: &File, path: &std::path::Path) -> io::Result<bool> {
    let (ours, named) = (file.metadata()?, if_exists(std::fs::metadata(path))?);
    Ok(named.is_some_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())))
}

/// Reads what the lock's owner wrote; none if it did not come so far.
pub(super) fn read_note(file: &File) -> Option<LockNote> {
    // Room for all of it, so that it is read in one piece.
    let mut bytes = Vec::with_capacity(512);
    file.take(MOST_NOTE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Tells whether a note was written into another file than the one it stands in.
pub(super) fn is_copied(file: &File, note: Option<&LockNote>) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(note.is_some_and(|note| (note.device, note.inode) != (metadata.dev(), metadata.ino())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Home;
    use super::*;

    #[test]
    fn a_lock_is_taken_once_and_let_go() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let lock = DirLock::take(&dir).expect("nobody has it");
        assert!(matches!(DirLock::take(&dir), Err(LockError::Held { .. })));
        assert!(!lock.copied);
        drop(lock);
        assert!(DirLock::take(&dir).is_ok());
    }

    #[test]
    fn without_a_directory_none_is_made() {
        let home = Home::new();
        let dir = HolderDir::new(home.path().join("h_gone"));
        assert!(matches!(DirLock::take(&dir), Err(LockError::Missing { .. })));
        assert!(!dir.path().exists());
    }

    #[test]
    fn a_copy_is_recognised() {
        let home = Home::new();
        let dir = home.holder("h_1");
        home.write_lock_note(&dir, 0);
        assert!(!DirLock::take(&dir).expect("free").copied);
        home.write_lock_note(&dir, 1);
        assert!(DirLock::take(&dir).expect("free").copied);
    }
}
