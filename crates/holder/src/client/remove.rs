//! Removing a holder's directory: under its lock, and only when nobody of its agent is left. It vanishes from
//! the list in one step; what a crash leaves of the rest is found by its name.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::harvest::tree_of;
use super::lock::{DirLock, LockError};
use crate::dir::{HolderDir, Launch, StatusNote};
use crate::file_ops::{AtPath, PathError, if_exists, sync_dir};
use crate::identity::{Identity, machine_boot};
use crate::journal::unhex;

/// Directories on their way out begin with this; nobody takes them for holders.
const LEAVING: &str = ".removed-";

/// Why a directory was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The holder is not dead.
    #[error("the holder is not proven dead")]
    Lock(#[from] LockError),
    /// Its agent is not.
    #[error("{} processes of its agent are still running (the first is {}): harvest it first", .0.len(), .0[0].pid)]
    StillThere(Vec<Identity>),
    /// The machine's processes could not be listed.
    #[error("cannot check for remaining processes of its agent; nothing was removed")]
    Processes(#[source] io::Error),
    /// A file could not be removed.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Removes a dead holder's directory.
pub fn remove(dir: &HolderDir) -> Result<(), RemoveError> {
    remove_under(DirLock::take(dir)?)
}

/// Removes the directory of a holder whose lock we have.
pub fn remove_under(lock: DirLock) -> Result<(), RemoveError> {
    let dir = &lock.dir;
    let launch: Option<Launch> = HolderDir::read(&dir.launch()).ok();
    if let Some(launch) = &launch
        && !lock.copied
    {
        let left = left_of(&lock, launch).map_err(RemoveError::Processes)?;
        if !left.is_empty() {
            return Err(RemoveError::StillThere(left));
        }
        remove_socket(launch);
    }
    Ok(remove_dir(dir.path()).at_path("remove", dir.path())?)
}

fn remove_dir(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut leaving = std::ffi::OsString::from(LEAVING);
    leaving.push(name);
    let leaving = parent.join(leaving);
    std::fs::rename(path, &leaving)?;
    sync_dir(parent)?;
    std::fs::remove_dir_all(&leaving)?;
    sync_dir(parent)
}

/// Removes what earlier removals left when they were cut off; returns how many there were.
pub fn remove_leftovers(holders: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in if_exists(std::fs::read_dir(holders))?.into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(LEAVING.as_bytes()) {
            if_exists(std::fs::remove_dir_all(entry.path()))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Looks for processes of its agent; of another boot of the machine nobody can be left.
fn left_of(lock: &DirLock, launch: &Launch) -> io::Result<Vec<Identity>> {
    if machine_boot()? != launch.machine_boot {
        return Ok(Vec::new());
    }
    let status: Option<StatusNote> = HolderDir::read(&lock.dir.status()).ok();
    let agent = status.as_ref().and_then(|status| status.agent.clone());
    tree_of(&launch.holder_id, status.as_ref(), agent, lock.note.as_ref()).members()
}

/// Removes the socket, if what stands there is one and has a name as we give them.
fn remove_socket(launch: &Launch) {
    let path = &launch.socket;
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let named_by_us = stem.is_some_and(|stem| unhex::<8>(stem).is_some());
    if named_by_us && std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
        // A socket that stays is an empty name in a directory that is cleaned at logout.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::super::inspect_all;
    use super::super::testing::Home;
    use super::*;
    use crate::tree::MARK;

    #[test]
    fn a_dead_holder_goes_with_its_socket_and_a_living_one_stays() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let socket = home.path().join("0123456789abcdef.sock");
        home.change_launch(&dir, |launch| launch.socket.clone_from(&socket));
        let listener = UnixListener::bind(&socket).expect("bound");
        let lock = DirLock::take(&dir).expect("free");
        assert!(matches!(remove(&dir), Err(RemoveError::Lock(LockError::Held { .. }))));
        assert!(dir.launch().exists() && socket.exists());
        drop((lock, listener));
        remove(&dir).expect("removed");
        assert!(!dir.path().exists() && !socket.exists());
        assert_eq!(inspect_all(home.path()).expect("a list"), []);
    }

    #[test]
    fn whoever_is_left_of_the_agent_keeps_the_directory() {
        let home = Home::new();
        let id = format!("h_remove_{}", std::process::id());
        let dir = home.holder(&id);
        let mut survivor = Command::new("sleep").arg("1000").env(MARK, &id).spawn().expect("started");
        let outcome = remove(&dir);
        let _ = survivor.kill();
        let _ = survivor.wait();
        let pid = survivor.id() as i32;
        assert!(matches!(outcome, Err(RemoveError::StillThere(left)) if left[0].pid == pid));
        remove(&dir).expect("nobody is left now");
    }

    #[test]
    fn nothing_is_removed_that_only_the_launch_says_is_a_socket() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let precious = home.path().join("0123456789abcdef.sock");
        std::fs::write(&precious, "work").expect("written");
        home.change_launch(&dir, |launch| launch.socket.clone_from(&precious));
        remove(&dir).expect("removed");
        assert!(precious.exists());
    }

    #[test]
    fn half_made_and_half_removed_directories_can_be_removed() {
        let home = Home::new();
        let dir = HolderDir::new(home.path().join("h_half"));
        std::fs::create_dir(dir.path()).expect("made");
        remove(&dir).expect("removed");
        let half = home.path().join(".removed-h_1");
        std::fs::create_dir_all(half.join("journal")).expect("made");
        assert_eq!(remove_leftovers(home.path()).expect("removed"), 1);
        assert!(!half.exists());
    }
}
