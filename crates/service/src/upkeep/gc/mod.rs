//! Removing what is there for nothing: directories of dead holders whose journals are in a log, blobs that nothing names,
//! copies of the holder's executable that nobody runs, old repairs. Only by proof, beside a daemon or without one; what
//! stays is said with the reason.

mod blobs;
mod checkpoints;
mod executables;
mod holders;
mod reachable;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_store::check::Holding;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::offline::{Offline, OfflineError};
use serde::Serialize;

use super::doctor::examine;
use crate::bundles::import::collect_leftovers;
use crate::error::chain;
use crate::test_knobs::crash_point;

/// What is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcOptions {
    /// Say what would be removed, and remove nothing.
    pub dry_run: bool,
    /// Also what repairs took away longer ago than this.
    pub repairs_older_than: Option<Duration>,
    /// How long checkpoints of runs are kept, and how much of them; all of them without it.
    pub checkpoints: Option<CheckpointRetention>,
    /// Also directories of dead holders that no session here claims and that were not touched for longer than this.
    pub orphans_older_than: Option<Duration>,
}

/// How long checkpoints of runs are kept. What an open run names stays in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRetention {
    /// Older ones go.
    pub keep: Duration,
    /// Together they take no more room than this: the oldest go first.
    pub max_bytes: u64,
}

/// Something that was removed, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    /// `holder`, `blob`, `pack`, `import`, `executable` or `repairs`.
    pub kind: &'static str,
    /// What.
    #[serde(serialize_with = "super::lossy")]
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
    #[serde(serialize_with = "super::lossy")]
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What was removed and what stays.
#[derive(Debug, Default, Serialize)]
pub struct Freed {
    /// Checkpoints of runs whose files are not kept any more, or would not be.
    pub expired_checkpoints: u64,
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

    /// Removes something, unless it is only to be said, and notes what came of it.
    fn remove(
        &mut self,
        (kind, path, why): (&'static str, PathBuf, String),
        options: GcOptions,
        remove: impl FnOnce(&Path) -> Result<(), String>,
    ) {
        let bytes = size_of(&path);
        match if options.dry_run { Ok(()) } else { remove(&path) } {
            Ok(()) => self.gone.push(Gone { kind, path, bytes, why }),
            Err(why) => self.failed.push(Left { kind, path, why }),
        }
    }

    /// Notes that something stays, and why.
    fn leave(&mut self, kind: &'static str, path: PathBuf, why: String) {
        self.left.push(Left { kind, path, why });
    }
}

/// Removes what is there for nothing.
pub fn gc(disk: &SharedDisk, home: &Path, options: GcOptions) -> Result<Freed, OfflineError> {
    let offline = Offline::open(disk.clone(), home)?;
    let mut freed = Freed::default();
    holders::collect(disk, &offline, options, &mut freed);
    // Whether a log can be read decides about blobs, and every log is read for that.
    let report = examine(disk, home, Holding::Nothing, &mut |_| {})?;
    let layout = Layout::new(home);
    if let Err(error) = blobs::collect(disk, &layout, &report, options, &mut freed) {
        freed.failed.push(Left { kind: "blobs", path: layout.blobs(), why: error.to_string() });
    }
    imports(disk, &layout, options, &mut freed);
    executables::collect(disk, &offline, options, &mut freed);
    old_repairs(&layout, options, &mut freed);
    Ok(freed)
}

/// Removes what imports have left that were cut short.
fn imports(disk: &SharedDisk, layout: &Layout, options: GcOptions, freed: &mut Freed) {
    match collect_leftovers(disk, layout, options.dry_run) {
        Ok(left) => {
            let why = "the import of a bundle was cut short";
            freed.gone.extend(left.into_iter().map(|(path, bytes)| Gone {
                kind: "import",
                path,
                bytes,
                why: why.into(),
            }));
        }
        Err(error) => freed.failed.push(Left { kind: "import", path: layout.imports(), why: chain(&error) }),
    }
}

/// Removes what repairs took away long ago, if someone says how long that is.
fn old_repairs(layout: &Layout, options: GcOptions, freed: &mut Freed) {
    let Some(least) = options.repairs_older_than else { return };
    let Ok(entries) = std::fs::read_dir(layout.repairs()) else { return };
    let mut old: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    old.retain(|path| path.is_dir() && age_of(path) >= least);
    old.sort();
    for path in old {
        crash_point("gc.before_repairs");
        let why = "it is what a repair took away, and old enough".into();
        freed.remove(("repairs", path, why), options, remove_tree);
    }
}

fn remove_tree(path: &Path) -> Result<(), String> {
    std::fs::remove_dir_all(path).map_err(|error| error.to_string())
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
