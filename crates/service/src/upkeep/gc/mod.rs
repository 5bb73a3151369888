//! Removing what is there for nothing: directories of dead holders whose journals are in a log, blobs that nothing names,
//! copies of the holder's executable that nobody runs, old repairs, runs of pipelines that ended long ago, worktrees of sessions that were removed. Only by proof, beside a daemon or without one; what
//! stays is said with the reason.

mod blobs;
mod cached_results;
mod checkpoints;
mod disk_usage;
mod executables;
mod holders;
mod reachable;
mod runs;
mod worktrees;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_store::blobs::Blobs;
use rekindle_store::check::Holding;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::offline::{Offline, OfflineError};
use rekindle_wire::request::Collect;
use rekindle_wire::view::{Collected, Gone, Left};

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
    /// How long results of steps are kept for other runs, and how much of them; all of them without it.
    pub cached_results: Option<CacheRetention>,
    /// Also runs of pipelines that ended longer ago than this.
    pub runs_older_than: Option<Duration>,
    /// Also directories of dead holders that no session here claims and that were not touched for longer than this.
    pub orphans_older_than: Option<Duration>,
}

impl From<&Collect> for GcOptions {
    fn from(asked: &Collect) -> GcOptions {
        let (older, most) = (asked.checkpoints_older_than_s, asked.checkpoints_max_bytes);
        let checkpoints = (older.is_some() || most.is_some()).then(|| CheckpointRetention {
            keep: older.map_or(Duration::MAX, Duration::from_secs),
            max_bytes: most.unwrap_or(u64::MAX),
        });
        let (older, most) = (asked.cached_results_older_than_s, asked.cached_results_max_bytes);
        let cached_results = (older.is_some() || most.is_some()).then(|| CacheRetention {
            keep: older.map_or(Duration::MAX, Duration::from_secs),
            max_bytes: most.unwrap_or(u64::MAX),
        });
        GcOptions {
            dry_run: asked.dry_run,
            cached_results,
            repairs_older_than: asked.repairs_older_than_s.map(Duration::from_secs),
            checkpoints,
            runs_older_than: asked.runs_older_than_s.map(Duration::from_secs),
            orphans_older_than: asked.orphans_older_than_s.map(Duration::from_secs),
        }
    }
}

/// How long checkpoints of runs are kept. What an open run, a run that was cut, a fork or a kept snapshot names stays in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRetention {
    /// Older ones go.
    pub keep: Duration,
    /// Together they take no more room than this: the oldest go first.
    pub max_bytes: u64,
}

/// How long results of steps are kept for other runs. What one left stays as long as the result does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRetention {
    /// Older ones go.
    pub keep: Duration,
    /// Together, with the files that they left, they take no more room than this: the oldest go first.
    pub max_bytes: u64,
}

/// What was removed and what stays, as it is found out.
#[derive(Default)]
struct Freed(Collected);

impl Freed {
    /// Removes something, unless it is only to be said, and notes what came of it.
    fn remove(
        &mut self,
        (kind, path, why): (&'static str, PathBuf, String),
        options: GcOptions,
        remove: impl FnOnce(&Path) -> Result<(), String>,
    ) {
        let bytes = size_of(&path);
        match if options.dry_run { Ok(()) } else { remove(&path) } {
            Ok(()) => self.note_gone(kind, &path, bytes, why),
            Err(why) => self.note_failed(kind, &path, why),
        }
    }

    /// Notes that something is gone, or would be.
    fn note_gone(&mut self, kind: &str, path: &Path, bytes: u64, why: impl Into<String>) {
        let path = path.display().to_string();
        self.0.gone.push(Gone { kind: kind.to_owned(), path, bytes, why: why.into() });
    }

    /// Notes that something stays, and why.
    fn leave(&mut self, kind: &str, path: &Path, why: String) {
        self.0.left.push(Left { kind: kind.to_owned(), path: path.display().to_string(), why });
    }

    /// Notes that something could not be removed, and why.
    fn note_failed(&mut self, kind: &str, path: &Path, why: String) {
        self.0.failed.push(Left { kind: kind.to_owned(), path: path.display().to_string(), why });
    }
}

/// Removes what is there for nothing from a home that this process does not own: what its owner relies on at this moment stays.
pub fn gc(disk: &SharedDisk, home: &Path, options: GcOptions) -> Result<Collected, OfflineError> {
    gc_of_owner(disk, home, &Blobs::reading(disk.clone(), Layout::new(home)), options)
}

/// Removes what is there for nothing, for whoever has the home's blobs open: one table of packs, and of who relies on which.
pub(crate) fn gc_of_owner(
    disk: &SharedDisk,
    home: &Path,
    blobs: &Blobs,
    options: GcOptions,
) -> Result<Collected, OfflineError> {
    let offline = Offline::open(disk.clone(), home)?;
    let mut freed = Freed::default();
    freed.0.space = disk_usage::measure(&Layout::new(home));
    holders::collect(disk, &offline, options, &mut freed);
    runs::collect(disk, &offline, options, &mut freed);
    // Whether a log can be read decides about blobs, and every log is read for that.
    let report = examine(disk, home, Holding::Nothing, None, &mut |_| {})?;
    let layout = Layout::new(home);
    // Before the blobs: what a result names goes with it.
    if let Err(error) = cached_results::collect(disk, &layout, blobs, options, &mut freed) {
        freed.note_failed("cached results", &layout.cached_results(), error.to_string());
    }
    if let Err(error) = blobs::collect(disk, &layout, blobs, &report, options, &mut freed) {
        freed.note_failed("blobs", &layout.blobs(), error.to_string());
    }
    imports(disk, &layout, options, &mut freed);
    executables::collect(disk, &offline, options, &mut freed);
    old_repairs(&layout, options, &mut freed);
    worktrees::collect(disk, &offline, options, &mut freed);
    Ok(freed.0)
}

/// Removes what imports have left that were cut short.
fn imports(disk: &SharedDisk, layout: &Layout, options: GcOptions, freed: &mut Freed) {
    match collect_leftovers(disk, layout, options.dry_run) {
        Ok(left) => {
            let why = "the import of a bundle was interrupted";
            left.iter().for_each(|(path, bytes)| freed.note_gone("import", path, *bytes, why));
        }
        Err(error) => freed.note_failed("import", &layout.imports(), chain(&error)),
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
        let why = "it was removed by a repair, and is old enough".into();
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
