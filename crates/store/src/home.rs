//! A home: its format, its directories, and the lock that makes one process its owner.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rekindle_domain::id::BootId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{
    Disk, DiskFile, OpenMode, if_exists, is_shortage, lock_within, read_all, read_up_to, replace_through,
    write_all_at,
};
use crate::error::{AtPath, PathError};
use crate::layout::{Layout, TEMPORARY_SUFFIX};

/// The format of homes this code makes.
pub const HOME_FORMAT: u32 = 2;

/// Longer than anybody has the lock who only looks.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// What the name of its description begins with, while that is written.
const HOME_FILE_PREFIX: &str = "home.json.";

/// What the file of a home of format 1 says.
const FORMAT_1: &[u8] = br#"{"format":1}"#;

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// There is none.
    #[error("there is no Rekindle home at {0}")]
    Missing(PathBuf),
    /// A newer version made it; it is left alone.
    #[error(
        "the home {path} has format {found}, newer than format {HOME_FORMAT} which this Rekindle knows; use a newer Rekindle"
    )]
    Newer {
        /// The home.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The file that says so cannot be understood.
    #[error(r#"{path} is not a home's description: {detail}; if the directory is a Rekindle home, put {{"format":{HOME_FORMAT}}} there"#)]
    NotAHome {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The directory is used for something else.
    #[error(r#"{path} contains {found:?} and is not a Rekindle home; choose an empty directory, or put {{"format":{HOME_FORMAT}}} into its home.json if it is one"#)]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// Something in it that is not ours.
        found: String,
    },
    /// Another process owns it.
    #[error("the home {path} is in use by {owner}")]
    Locked {
        /// The home.
        path: PathBuf,
        /// Who has it.
        owner: Box<Owner>,
    },
    /// A file or directory cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Who holds a home's lock, as far as the lock file tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Owner {
    /// Its process.
    pub pid: Option<u32>,
    /// Its life.
    pub boot_id: Option<BootId>,
    /// Device and inode of the lock file itself: in a copied home they differ from the real ones.
    pub file: Option<(u64, u64)>,
    /// In whose life the home was owned before, until its list has been compared with the logs that are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unchecked: Option<BootId>,
}

impl Owner {
    /// Returns whose list says what was there when the home was last left, if anybody's does.
    fn last_list(&self) -> Option<BootId> {
        self.unchecked.or(self.boot_id)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// Which home is meant: device and inode of its lock file, which no two homes of a machine share. A copy has another,
/// a home that is reached by another path has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HomeId {
    device: u64,
    inode: u64,
}

impl HomeId {
    /// Looks at a home for what it is known by; it has nothing before its first owner.
    pub fn of(disk: &dyn Disk, layout: &Layout) -> io::Result<HomeId> {
        let (device, inode) = disk.stat(&layout.lock())?.identity;
        Ok(HomeId { device, inode })
    }
}

impl std::fmt::Display for HomeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

impl From<HomeId> for String {
    fn from(id: HomeId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for HomeId {
    type Error = String;
    fn try_from(text: String) -> Result<HomeId, String> {
        let parts = text.split_once(':').and_then(|(device, inode)| {
            Some(HomeId { device: device.parse().ok()?, inode: inode.parse().ok()? })
        });
        parts.ok_or_else(|| format!("{text:?} is not DEVICE:INODE"))
    }
}

/// Whether a home is where it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Never locked before.
    New,
    /// The same files as the last time.
    Same,
    /// A copy of another home: what its files say of processes is not about this one, so nothing is
    /// signalled because of them (I9).
    Copied,
}

#[derive(Serialize, Deserialize)]
struct HomeFile {
    format: u32,
}

/// The lock on a home, held as long as this lives.
pub struct HomeLock {
    file: Box<dyn DiskFile>,
    /// Whether the home is where it was made.
    pub origin: Origin,
    /// Which home it is.
    pub id: HomeId,
    owner: Owner,
    /// In whose life the home was owned before its list was last compared with the logs.
    pub(crate) last_owner: Option<BootId>,
}

impl HomeLock {
    /// Returns whose life it is held in.
    pub(crate) fn boot_id(&self) -> Option<BootId> {
        self.owner.boot_id
    }

    /// Says that the list that the last owner left has been compared with the logs that are there.
    pub(crate) fn mark_list_checked(&self) -> io::Result<()> {
        if self.owner.unchecked.is_none() {
            return Ok(());
        }
        // Whatever else was written there stays, and in one write of the same length: half of it would be read by nobody.
        let before = read_lock_file(&*self.file);
        let mut fields: Map<String, Value> = serde_json::from_slice(&before)?;
        fields.remove("unchecked");
        let mut text = serde_json::to_vec(&fields)?;
        text.resize(before.len().max(text.len()), b' ');
        write_all_at(&*self.file, &text, 0)
    }
}

/// Checks that a home is one this version can read.
pub fn check(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    let path = layout.home_file();
    let found = if_exists(read_all(disk, &path, 1 << 20)).at_path("read", &path)?;
    let bytes = found.ok_or_else(|| HomeError::Missing(layout.home().to_owned()))?;
    let home: HomeFile = serde_json::from_slice(&bytes)
        .map_err(|error| HomeError::NotAHome { path, detail: error.to_string() })?;
    if home.format > HOME_FORMAT {
        return Err(HomeError::Newer { path: layout.home().to_owned(), found: home.format });
    }
    Ok(())
}

/// Makes what is missing of a home. A crash in the middle leaves less of one, and the next call the rest. Several may make the same
/// home at the same moment: commands that a script gives at once in a new one.
pub fn prepare(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    match check(disk, layout) {
        Ok(()) => make_missing_directories(disk, layout),
        Err(HomeError::Missing(_)) => make(disk, layout).or_else(|error| {
            // Somebody else was faster: what was in our way is his.
            check(disk, layout).map_err(|_| error)?;
            make_missing_directories(disk, layout)
        }),
        Err(other) => Err(other),
    }
}

/// Makes a home where there is none.
fn make(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    refuse_foreign(disk, layout)?;
    for directory in layout.directories() {
        make_directory(disk, directory)?;
    }
    describe(disk, layout)
}

/// Makes the directories that somebody removed, or a crash left out.
fn make_missing_directories(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    for directory in layout.directories() {
        if disk.stat(&directory).is_err() {
            make_directory(disk, directory)?;
        }
    }
    Ok(())
}

/// Writes which format a home has, under a name that nobody else writes to before it gets its own.
fn describe(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let path = layout.home_file();
    let (process, count) = (std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed));
    let temporary = layout.home().join(format!("{HOME_FILE_PREFIX}{process}-{count}{TEMPORARY_SUFFIX}"));
    let bytes = serde_json::to_vec(&HomeFile { format: HOME_FORMAT }).unwrap_or_default();
    replace_through(disk, &temporary, &path, &bytes).at_path("write", &path)?;
    // Others' who are still at it, too: they find the home made.
    let left = disk.list(layout.home()).unwrap_or_default();
    for entry in left.iter().filter(|entry| is_half_written(&entry.name)) {
        let _ = disk.remove_file(&layout.home().join(&entry.name));
    }
    Ok(())
}

/// Tells whether a name is that of a description that was not written to its end, or is just being written.
fn is_half_written(name: &str) -> bool {
    name.starts_with(HOME_FILE_PREFIX) && name.ends_with(TEMPORARY_SUFFIX)
}

/// Makes a home of an earlier format one of ours, before anything of ours is written into it: an older version would take that for
/// damage, and leaves alone what it does not know. What is there already is read as it is. A single byte is changed in
/// place, which is whole or not at all, and needs no room.
pub(crate) fn upgrade(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    let path = layout.home_file();
    let bytes = read_all(disk, &path, 1 << 20).at_path("read", &path)?;
    // Somebody may have written it anew by hand.
    if bytes != FORMAT_1 {
        let earlier = serde_json::from_slice(&bytes).is_ok_and(|home: HomeFile| home.format < HOME_FORMAT);
        return if earlier { describe(disk, layout) } else { Ok(()) };
    }
    let written = disk.open(&path, OpenMode::Write).and_then(|file| {
        write_all_at(&*file, HOME_FORMAT.to_string().as_bytes(), (FORMAT_1.len() - 2) as u64)?;
        file.sync()
    });
    Ok(written.at_path("write", &path)?)
}

/// Refuses to make a home of a directory that holds anything but what a crash in here may have left.
fn refuse_foreign(disk: &dyn Disk, layout: &Layout) -> Result<(), HomeError> {
    let path = layout.home().to_owned();
    let entries = if_exists(disk.list(&path)).at_path("list", &path)?.unwrap_or_default();
    let ours = ["wal", "sessions", "tasks", "blobs", "daemon.lock"];
    let is_ours = |name: &str| ours.contains(&name) || is_half_written(name);
    match entries.into_iter().find(|entry| !is_ours(&entry.name)) {
        Some(entry) => Err(HomeError::NotEmpty { path, found: entry.name }),
        None => Ok(()),
    }
}

/// Makes a directory and its name durable. The home itself may lie deep below directories that do not exist.
fn make_directory(disk: &dyn Disk, path: PathBuf) -> Result<(), HomeError> {
    // A relative path of one name lies in the directory we are in, which exists.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned);
    if let Some(parent) = parent.clone().filter(|parent| disk.stat(parent).is_err() && *parent != path) {
        make_directory(disk, parent)?;
    }
    disk.create_dir(&path).at_path("make", &path)?;
    let Some(parent) = parent else { return Ok(()) };
    match disk.sync_dir(&parent) {
        // The directory above may be someone else's; then its durability is theirs too.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        outcome => Ok(outcome.at_path("sync", &parent)?),
    }
}

/// Takes the lock on a home for its new owner, or says who has it.
pub fn lock(disk: &dyn Disk, layout: &Layout, pid: u32, boot_id: BootId) -> Result<HomeLock, HomeError> {
    lock_as(disk, layout, |identity, before| Owner {
        pid: Some(pid),
        boot_id: Some(boot_id),
        file: Some(identity),
        unchecked: before.last_list(),
    })
}

/// Takes the lock on a home for someone who sees to it and does not move in: whether it is a copy can still be told
/// afterwards.
pub fn lock_for_upkeep(disk: &dyn Disk, layout: &Layout, pid: u32) -> Result<HomeLock, HomeError> {
    lock_as(disk, layout, |_, before| Owner { pid: Some(pid), ..before })
}

fn lock_as(
    disk: &dyn Disk,
    layout: &Layout,
    owner: impl FnOnce((u64, u64), Owner) -> Owner,
) -> Result<HomeLock, HomeError> {
    let path = layout.lock();
    let file = disk.open(&path, OpenMode::Create).at_path("open", &path)?;
    // Not at once: [`owner`] looks by taking the lock, and a look must not turn an owner away.
    if !lock_within(&*file, LOOKED_AT).at_path("lock", &path)? {
        let owner = Box::new(read_owner(&*file));
        return Err(HomeError::Locked { path: layout.home().to_owned(), owner });
    }
    let identity = file.stat().at_path("look at", &path)?.identity;
    // Someone may have put another file there between opening and locking: then this lock guards nothing.
    if disk.stat(&path).map(|stat| stat.identity).ok() != Some(identity) {
        return Err(HomeError::Locked { path: layout.home().to_owned(), owner: Box::default() });
    }
    let before = read_owner(&*file);
    let origin = match before.file {
        None => Origin::New,
        Some(known) if known == identity => Origin::Same,
        Some(_) => Origin::Copied,
    };
    let last_owner = before.last_list();
    let owner = owner(identity, before);
    // Where a full disk has no room, the lock holds all the same: the file only tells others.
    match write_owner(&*file, &owner) {
        Err(error) if is_shortage(&error) => {}
        outcome => outcome.at_path("write", &path)?,
    }
    let (device, inode) = identity;
    Ok(HomeLock { file, origin, id: HomeId { device, inode }, owner, last_owner })
}

/// Writes an owner into a lock file: in place, so that a full disk has the room.
fn write_owner(file: &dyn DiskFile, owner: &Owner) -> io::Result<()> {
    let text = serde_json::to_vec(owner).unwrap_or_default();
    write_all_at(file, &text, 0).and_then(|()| file.set_len(text.len() as u64))
}

/// Tells who owns a home, without taking its lock; none if nobody does.
pub fn owner(disk: &dyn Disk, layout: &Layout) -> Option<Owner> {
    let file = disk.open(&layout.lock(), OpenMode::Read).ok()?;
    match file.try_lock() {
        Ok(true) | Err(_) => None,
        Ok(false) => Some(read_owner(&*file)),
    }
}

/// Tells in whose life a home was last owned before its list was compared with the logs, whether that one lives or not.
pub(crate) fn last_owner_of(disk: &dyn Disk, layout: &Layout) -> Option<BootId> {
    read_owner(&*disk.open(&layout.lock(), OpenMode::Read).ok()?).last_list()
}

/// Tells whether a home is a copy, without taking its lock.
pub fn is_copied(disk: &dyn Disk, layout: &Layout) -> bool {
    let Ok(file) = disk.open(&layout.lock(), OpenMode::Read) else { return false };
    let identity = file.stat().map(|stat| stat.identity).ok();
    read_owner(&*file).file.is_some_and(|known| Some(known) != identity)
}

fn read_owner(file: &dyn DiskFile) -> Owner {
    serde_json::from_slice(&read_lock_file(file)).unwrap_or_default()
}

fn read_lock_file(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let read = read_up_to(file, &mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    bytes
}
