//! Removing what is there for nothing: directories of dead holders whose journals are in a log, blobs that nothing names,
//! copies of the holder's executable that nobody runs, old repairs. Only by proof, beside a daemon or without one; what
//! stays is said with the reason.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use rekindle_holder::client::{DirLock, Found, LockState, remove_leftovers, remove_under};
use rekindle_store::check::Holding;
use rekindle_store::disk::{OpenMode, SharedDisk};
use rekindle_store::home::{self, HomeError};
use rekindle_store::layout::Layout;
use rekindle_store::offline::{Offline, OfflineError};
use serde::{Serialize, Serializer};

use super::blobs;
use super::doctor::examine;
use super::holders::{Holder, Standing, look_at_holders};
use crate::crash::crash_point;
use crate::error::chain;

/// How old a directory must be that was begun for a holder and never used: whoever makes one needs milliseconds.
const HALF_MADE_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcOptions {
    /// Say what would be removed, and remove nothing.
    pub dry_run: bool,
    /// Also what repairs took away longer ago than this.
    pub repairs_older_than: Option<Duration>,
    /// Also directories of dead holders that no session here claims and that were not touched for longer than this.
    pub orphans_older_than: Option<Duration>,
}

/// Something that was removed, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    /// `holder`, `blob`, `executable` or `repairs`.
    pub kind: &'static str,
    /// What.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Room it took.
    pub bytes: u64,
    /// Why it could go.
    pub why: String,
}

/// Something that stays, and why.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
    /// Of which kind.
    pub kind: &'static str,
    /// What.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What was removed and what stays.
#[derive(Debug, Default, Serialize)]
pub struct Freed {
    /// Removed, or would be.
    pub gone: Vec<Gone>,
    /// Left, where someone may have thought it would go.
    pub left: Vec<Left>,
    /// What could not be removed.
    pub failed: Vec<Left>,
}

impl Freed {
    /// Returns how much room that makes.
    pub fn bytes(&self) -> u64 {
        self.gone.iter().map(|gone| gone.bytes).sum()
    }
}

/// A length of time as people write it: `12h`, `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Duration);

impl FromStr for Age {
    type Err = String;
    fn from_str(text: &str) -> Result<Age, String> {
        let wrong = || format!("{text:?} is no length of time: write a number and s, m, h or d, as in 30d");
        let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(seconds).map(|seconds| Age(Duration::from_secs(seconds))).ok_or_else(wrong)
    }
}

/// Removes what is there for nothing.
pub fn gc(disk: &SharedDisk, home: &Path, options: GcOptions) -> Result<Freed, OfflineError> {
    let offline = Offline::open(disk.clone(), home)?;
    let mut freed = Freed::default();
    holders(disk, &offline, options, &mut freed);
    // Whether a log can be read decides about blobs, and every log is read for that.
    let report = examine(disk, home, Holding::Nothing, &mut |_| {})?;
    let layout = Layout::new(home);
    if let Err(error) = blobs::collect(disk, &layout, &report, options.dry_run, &mut freed) {
        freed.failed.push(Left { kind: "blobs", path: layout.blobs(), why: error.to_string() });
    }
    executables(disk, &offline, options, &mut freed);
    old_repairs(&layout, options, &mut freed);
    Ok(freed)
}

/// Removes directories of dead holders.
fn holders(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let directory = offline.layout().home().join("holders");
    let failed = |why: String| Left { kind: "holder", path: directory.clone(), why };
    if !options.dry_run
        && let Err(error) = remove_leftovers(&directory)
    {
        freed.failed.push(failed(chain(&error)));
    }
    let all = match look_at_holders(offline) {
        Ok(all) => all,
        Err(error) => return freed.failed.push(failed(chain(&error))),
    };
    let going: Vec<(Holder, String)> = all
        .into_iter()
        .filter_map(|holder| match may_go(&holder, options) {
            Ok(why) => Some((holder, why)),
            Err(Some(why)) => {
                let path = holder.seen.dir.path().to_owned();
                freed.left.push(Left { kind: "holder", path, why });
                None
            }
            Err(None) => None,
        })
        .collect();
    if going.is_empty() {
        return;
    }
    // What proves that a journal is not needed may be in the page cache alone: it is on disk before the journal goes.
    if !options.dry_run
        && let Err(error) = secure(disk, offline, &going)
    {
        return freed.failed.push(failed(chain(&error)));
    }
    for (holder, why) in going {
        let path = holder.seen.dir.path().to_owned();
        let bytes = size_of(&path);
        match if options.dry_run { Ok(()) } else { remove_holder(&holder) } {
            Ok(()) => freed.gone.push(Gone { kind: "holder", path, bytes, why }),
            Err(why) => freed.failed.push(Left { kind: "holder", path, why }),
        }
    }
}

/// Says why a holder's directory may go; else why not, where that is worth saying.
fn may_go(holder: &Holder, options: GcOptions) -> Result<String, Option<String>> {
    let age = age_of(holder.seen.dir.path());
    match &holder.standing {
        Standing::Ingested => Ok("the holder is dead and its journal is in the log".into()),
        Standing::HalfMade if age >= HALF_MADE_FOR => Ok("it was begun and never used".into()),
        Standing::Unclaimed(why) => match options.orphans_older_than {
            Some(least) if age >= least => {
                Ok(format!("the holder is dead and its session {why}; you asked for it"))
            }
            Some(_) => Err(Some("it is not old enough".into())),
            None => Err(Some(format!(
                "its session {why}: its journal may be the only place of what the agent said; --orphans-older-than takes it"
            ))),
        },
        Standing::JournalDamaged(_) => Err(Some("its journal is damaged and not wholly in a log".into())),
        Standing::Unharvested => {
            Err(Some("its journal is not in the log yet: the next daemon sees to that".into()))
        }
        Standing::Newer(_) | Standing::Unreadable(_) => Err(Some("it cannot be understood".into())),
        Standing::HalfMade
        | Standing::Lives
        | Standing::Orphan
        | Standing::Quarantined(_)
        | Standing::Copied
        | Standing::Busy => Err(None),
    }
}

/// Makes durable what the logs of these holders' sessions say.
fn secure(disk: &SharedDisk, offline: &Offline, going: &[(Holder, String)]) -> io::Result<()> {
    let layout = offline.layout();
    let wal = disk.list(&layout.wal())?.into_iter().map(|entry| layout.wal().join(entry.name));
    let logs = going.iter().filter_map(|(holder, _)| holder.session).map(|session| layout.log(session));
    for path in wal.chain(logs) {
        match disk.open(&path, OpenMode::Read).and_then(|file| file.sync()) {
            // A segment that a checkpoint dropped meanwhile: its logs were synced before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Removes a directory under its lock; a tree that is not gone keeps it.
fn remove_holder(holder: &Holder) -> Result<(), String> {
    let lock = DirLock::take(&holder.seen.dir).map_err(|error| chain(&error))?;
    crash_point("gc.holder_locked");
    let removed = remove_under(lock).map_err(|error| chain(&error));
    crash_point("gc.holder_gone");
    removed
}

/// Removes copies of the holder's executable. A daemon starts holders from one of them: beside it none is touched.
fn executables(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let layout = offline.layout();
    let bin = layout.home().join("bin");
    let Ok(entries) = std::fs::read_dir(&bin) else { return };
    let mut copies: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_copy(path)).collect();
    copies.sort();
    if copies.is_empty() {
        return;
    }
    // Held while this looks and removes, so that none starts meanwhile.
    let held = if options.dry_run {
        home::owner(&**disk, layout).map_or(Ok(None), |_| Err(None))
    } else {
        home::hold(&**disk, layout, std::process::id()).map(Some).map_err(|error| match error {
            HomeError::Locked { .. } => None,
            other => Some(chain(&other)),
        })
    };
    let _held = match held {
        Ok(held) => held,
        Err(why) => {
            let why = why.unwrap_or_else(|| {
                "a daemon runs and starts holders from them; stop it first, agents work on".into()
            });
            return freed.left.push(Left { kind: "executable", path: bin, why });
        }
    };
    let Ok(all) = look_at_holders(offline) else { return };
    let mut used = Vec::new();
    for holder in
        all.iter().filter(|one| !matches!(one.seen.lock, LockState::Free { .. } | LockState::Missing))
    {
        match &holder.seen.launch {
            Found::There(launch) => used.push(launch.executable.clone()),
            Found::Missing | Found::Unreadable(_) => {
                let why = format!("{} may run any of them", holder.seen.holder_id);
                return freed.left.push(Left { kind: "executable", path: bin, why });
            }
        }
    }
    for path in copies {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if used.contains(&name) {
            continue;
        }
        let bytes = size_of(&path);
        crash_point("gc.before_executable");
        match if options.dry_run { Ok(()) } else { std::fs::remove_dir_all(&path) } {
            Ok(()) => {
                let why = "no living holder runs it, and a daemon makes its own again".into();
                freed.gone.push(Gone { kind: "executable", path, bytes, why });
            }
            Err(error) => freed.failed.push(Left { kind: "executable", path, why: error.to_string() }),
        }
    }
}

/// Tells whether a directory is one of our copies, by its name.
fn is_copy(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.is_dir()
}

/// Removes what repairs took away long ago, if someone says how long that is.
fn old_repairs(layout: &Layout, options: GcOptions, freed: &mut Freed) {
    let Some(least) = options.repairs_older_than else { return };
    let Ok(entries) = std::fs::read_dir(layout.repairs()) else { return };
    let mut old: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    old.retain(|path| path.is_dir() && age_of(path) >= least);
    old.sort();
    for path in old {
        let bytes = size_of(&path);
        crash_point("gc.before_repairs");
        match if options.dry_run { Ok(()) } else { std::fs::remove_dir_all(&path) } {
            Ok(()) => {
                let why = "it is what a repair took away, and old enough".into();
                freed.gone.push(Gone { kind: "repairs", path, bytes, why });
            }
            Err(error) => freed.failed.push(Left { kind: "repairs", path, why: error.to_string() }),
        }
    }
}

/// How long nothing in a directory was changed; nothing if that cannot be told.
fn age_of(path: &Path) -> Duration {
    let mut newest = SystemTime::UNIX_EPOCH;
    each_below(path, &mut |metadata| newest = newest.max(metadata.modified().unwrap_or(SystemTime::now())));
    SystemTime::now().duration_since(newest).unwrap_or_default()
}

fn size_of(path: &Path) -> u64 {
    let mut bytes = 0;
    each_below(path, &mut |metadata| bytes += if metadata.is_file() { metadata.len() } else { 0 });
    bytes
}

fn each_below(path: &Path, visit: &mut dyn FnMut(&std::fs::Metadata)) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    visit(&metadata);
    if metadata.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| each_below(&entry.path(), visit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let seconds = |text: &str| text.parse::<Age>().map(|age| age.0.as_secs());
        assert_eq!(seconds("30d"), Ok(30 * 86_400));
        assert_eq!((seconds("0s"), seconds("5m"), seconds("12h")), (Ok(0), Ok(300), Ok(43_200)));
        for wrong in ["", "d", "30", "3w", "-1d", "1é", "99999999999999999999d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
