//! The daemon's file, `daemon.json`: where the daemon of a home is. It writes the file when it listens and removes it when it leaves. One that is left
//! behind without a listener tells of a daemon that died, and one that was copied with its home tells of another home's.
//! On a disk without a free block the lock's file has it: that one is there, and has room.

use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rekindle_holder::identity::{Identity, Presence};
use rekindle_store::disk::{RealDisk, is_shortage};
use rekindle_store::home::HomeId;
use rekindle_store::layout::Layout;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::listen_options::Listening;

/// The file's name in the home.
const FILE: &str = "daemon.json";

/// The field of the lock's file that has the same where there is no room for a file.
const IN_LOCK: &str = "daemon";

/// The daemon's file: where the daemon is, and which process it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonFile {
    /// The daemon's process.
    pub pid: u32,
    /// Its life.
    pub boot_id: String,
    /// Its epoch.
    #[serde(default)]
    pub epoch: u64,
    /// Where it listens: an absolute path.
    pub socket: PathBuf,
    /// The home that it serves; in a copy of that home this is another than the copy's own.
    pub home_id: Option<HomeId>,
    /// Where else it listens, if anywhere.
    pub listen: Option<String>,
    /// What it was told of that, for whoever comes after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Listening>,
    /// Its version.
    pub version: String,
    /// Which process is meant, so that a later one with its pid is not.
    pub process: Option<Identity>,
}

/// The state of a home's daemon, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonState {
    /// It listens.
    Lives(DaemonFile),
    /// It does not listen, and its process is there: it is about to leave.
    Leaves,
    /// Its process is there and its socket is not: someone removed it, and nobody can reach it any more.
    Cut(DaemonFile),
    /// A process is there that may serve the home, and it cannot be told whether it does: nothing is asked of it.
    Unproven(DaemonFile),
    /// It died without a word.
    Died,
    /// It left, or there was none.
    None,
}

/// Looks for a home's daemon.
pub fn find_daemon(home: &Path) -> DaemonState {
    let place = match read_any(home) {
        None => return DaemonState::None,
        Some(Err(_)) => return DaemonState::Died,
        Some(Ok(place)) => place,
    };
    match place.whose(home) {
        Ownership::Ours => {}
        Ownership::Anothers => return DaemonState::None,
        Ownership::Unknown if place.is_there() => return DaemonState::Unproven(place),
        Ownership::Unknown => return DaemonState::Died,
    }
    match try_connect(&place.socket) {
        Ok(()) => DaemonState::Lives(place),
        Err(error) if place.is_there() => {
            // Whoever leaves removes the file first, then the socket.
            let stays = || DaemonFile::read(home).as_ref() == Some(&place);
            if error.kind() == io::ErrorKind::NotFound && stays() {
                DaemonState::Cut(place)
            } else {
                DaemonState::Leaves
            }
        }
        Err(_) => DaemonState::Died,
    }
}

/// Reads the description of a home's daemon, wherever it is.
fn read_any(home: &Path) -> Option<serde_json::Result<DaemonFile>> {
    match std::fs::read(home.join(FILE)) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes)),
        Err(_) => {
            let mut lock: Value =
                serde_json::from_slice(&std::fs::read(Layout::new(home).lock()).ok()?).ok()?;
            Some(serde_json::from_value(lock.get_mut(IN_LOCK)?.take()))
        }
    }
}

/// Tells whether someone listens. Callers that a hung daemon never took fill its queue, and the next would wait for ever:
/// a full one says enough.
fn try_connect(socket: &Path) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&ours, &SocketAddrUnix::new(socket)?) {
        Err(Errno::AGAIN) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Whether the file is about the home that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The one it lies in.
    Ours,
    /// Another one: it was copied from there.
    Anothers,
    /// It does not say, or the home has lost its lock.
    Unknown,
}

impl DaemonFile {
    /// Reads the file of a home; whoever wrote it may be gone. One that was copied says nothing of this home.
    pub fn read(home: &Path) -> Option<DaemonFile> {
        read_any(home).and_then(Result::ok).filter(|place| place.whose(home) == Ownership::Ours)
    }

    /// Returns the process that may serve a home, if it cannot be told whether it does.
    pub fn unproven(home: &Path) -> Option<DaemonFile> {
        let doubtful = |place: &DaemonFile| place.whose(home) == Ownership::Unknown && place.is_there();
        read_any(home).and_then(Result::ok).filter(doubtful)
    }

    /// Tells whether its process lives.
    pub(crate) fn is_there(&self) -> bool {
        self.process.as_ref().is_some_and(|process| matches!(process.presence(), Ok(Presence::Alive)))
    }

    fn whose(&self, home: &Path) -> Ownership {
        match (self.home_id, HomeId::of(&RealDisk, &Layout::new(home))) {
            (Some(theirs), Ok(ours)) if theirs == ours => Ownership::Ours,
            (Some(_), Ok(_)) => Ownership::Anothers,
            (None, _) | (_, Err(_)) => Ownership::Unknown,
        }
    }

    /// Writes where we are, without which nobody finds us: if there is no room for the file, when room was made, and if there is
    /// still none, into the file of the lock, which is ours.
    pub fn publish(&self, home: &Path, make_room: impl FnOnce()) -> io::Result<()> {
        match self.write(home) {
            Err(error) if is_shortage(&error) => make_room(),
            outcome => return outcome,
        }
        match self.write(home) {
            Err(error) if is_shortage(&error) => {
                // Of an earlier daemon: it would be read first.
                let _ = std::fs::remove_file(home.join(FILE));
                write_in_lock(home, Some(self))
            }
            outcome => outcome,
        }
    }

    /// Writes the file, whole or not at all.
    fn write(&self, home: &Path) -> io::Result<()> {
        let (path, new) = (home.join(FILE), home.join(format!("{FILE}.tmp")));
        // What a crash left there goes first, and so does a link, through which we would write elsewhere.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(new, path)
    }

    /// Removes the file if it is still ours: a successor may have written its own.
    pub fn remove(&self, home: &Path) {
        let path = home.join(FILE);
        if read_any(home).and_then(Result::ok).as_ref() == Some(self) {
            // One that stays is taken for a daemon that died, which does no harm.
            let _ = match std::fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => write_in_lock(home, None),
                outcome => outcome,
            };
        }
    }
}

/// Writes into the lock's file where its owner is, in place: it has a block, and the next owner writes it anew.
fn write_in_lock(home: &Path, place: Option<&DaemonFile>) -> io::Result<()> {
    let path = Layout::new(home).lock();
    let mut lock: Value = serde_json::from_slice(&std::fs::read(&path)?).unwrap_or_else(|_| json!({}));
    match (lock.as_object_mut(), place) {
        (Some(fields), Some(place)) => drop(fields.insert(IN_LOCK.into(), serde_json::to_value(place)?)),
        (Some(fields), None) => drop(fields.remove(IN_LOCK)),
        (None, _) => {}
    }
    let text = serde_json::to_vec(&lock)?;
    let file = std::fs::OpenOptions::new().write(true).open(&path)?;
    file.write_all_at(&text, 0)?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Returns the description of a daemon whose home has a lock.
    fn read_any(home: &Path, socket: PathBuf) -> DaemonFile {
        std::fs::write(home.join("daemon.lock"), "").expect("a lock");
        let home_id = HomeId::of(&RealDisk, &Layout::new(home)).ok();
        let (boot_id, version) = ("boot_1".into(), "0.1.0".into());
        DaemonFile {
            pid: 1,
            boot_id,
            epoch: 2,
            socket,
            home_id,
            listen: None,
            told: None,
            version,
            process: None,
        }
    }

    // I10: where there is no room for a file, the lock's own file says where its owner is, and what it said before.
    #[test]
    fn without_room_for_a_file_the_lock_says_where_its_owner_is() {
        let home = tempfile::tempdir().expect("a directory");
        let place = read_any(home.path(), home.path().join("s"));
        std::fs::write(home.path().join("daemon.lock"), r#"{"pid":7,"boot_id":null,"file":[1,2]}"#)
            .expect("a lock");
        assert_eq!(find_daemon(home.path()), DaemonState::None);
        let _listener = UnixListener::bind(&place.socket).expect("a socket");
        write_in_lock(home.path(), Some(&place)).expect("written");
        assert_eq!(find_daemon(home.path()), DaemonState::Lives(place.clone()));
        assert_eq!(DaemonFile::read(home.path()), Some(place.clone()));
        place.remove(home.path());
        assert_eq!(find_daemon(home.path()), DaemonState::None);
        let lock = std::fs::read_to_string(home.path().join("daemon.lock")).expect("a lock");
        assert_eq!(lock, r#"{"boot_id":null,"file":[1,2],"pid":7}"#);
    }

    /// I9: a daemon that cannot be proven to be this home's is neither asked nor signalled.
    #[test]
    fn a_copied_description_is_about_another_home_and_one_without_a_lock_about_nobody_known() {
        let (home, copy) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let ours = Identity::of(std::process::id().cast_signed()).expect("we live");
        let place = DaemonFile { process: Some(ours), ..read_any(home.path(), home.path().join("s")) };
        let _listener = UnixListener::bind(&place.socket).expect("a socket");
        place.write(home.path()).expect("written");
        assert_eq!(find_daemon(home.path()), DaemonState::Lives(place.clone()));
        for file in ["daemon.lock", "daemon.json"] {
            std::fs::copy(home.path().join(file), copy.path().join(file)).expect("copied");
        }
        assert_eq!((find_daemon(copy.path()), DaemonFile::read(copy.path())), (DaemonState::None, None));
        // Another path to the same files is the same home.
        let link = copy.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("a link");
        assert_eq!(find_daemon(&link), DaemonState::Lives(place.clone()));
        std::fs::remove_file(home.path().join("daemon.lock")).expect("removed");
        assert_eq!(
            (find_daemon(home.path()), DaemonFile::read(home.path())),
            (DaemonState::Unproven(place.clone()), None)
        );
        DaemonFile { process: None, ..place }.write(home.path()).expect("written");
        assert_eq!(find_daemon(home.path()), DaemonState::Died);
    }

    #[test]
    fn a_description_is_written_through_no_link() {
        let home = tempfile::tempdir().expect("a directory");
        let (victim, new) = (home.path().join("victim"), home.path().join("daemon.json.tmp"));
        std::fs::write(&victim, "precious").expect("written");
        std::os::unix::fs::symlink(&victim, &new).expect("a link");
        let place = read_any(home.path(), home.path().join("s"));
        // Twice: the second time a crash may have left something there.
        for _ in 0..2 {
            place.write(home.path()).expect("written");
            assert_eq!(DaemonFile::read(home.path()).as_ref(), Some(&place));
            std::fs::write(&new, "half").expect("written");
        }
        assert_eq!(std::fs::read_to_string(&victim).expect("read"), "precious");
    }

    #[test]
    fn a_daemon_that_lives_one_that_leaves_one_that_died_and_none() {
        let home = tempfile::tempdir().expect("a directory");
        assert_eq!(find_daemon(home.path()), DaemonState::None);
        let socket = home.path().join("s");
        let place = read_any(home.path(), socket);
        place.write(home.path()).expect("written");
        assert_eq!(find_daemon(home.path()), DaemonState::Died);
        let listener = UnixListener::bind(&place.socket).expect("a socket");
        assert_eq!(find_daemon(home.path()), DaemonState::Lives(place.clone()));
        // Nobody takes these: the queue is full long before the last of them.
        (0..5000).for_each(|_| try_connect(&place.socket).expect("someone listens"));
        assert_eq!(find_daemon(home.path()), DaemonState::Lives(place.clone()));
        drop(listener);
        assert_eq!(find_daemon(home.path()), DaemonState::Died);
        let ours = Identity::of(std::process::id().cast_signed()).expect("we live");
        DaemonFile { process: Some(ours), ..place.clone() }.write(home.path()).expect("written");
        assert_eq!(find_daemon(home.path()), DaemonState::Leaves);
        std::fs::remove_file(&place.socket).expect("removed");
        assert!(matches!(find_daemon(home.path()), DaemonState::Cut(_)));
        place.write(home.path()).expect("written");
        DaemonFile { pid: 2, ..place.clone() }.remove(home.path());
        assert_eq!(find_daemon(home.path()), DaemonState::Died, "someone else's file stays");
        place.remove(home.path());
        assert_eq!(find_daemon(home.path()), DaemonState::None);
    }
}
