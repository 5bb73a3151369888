//! Where a run puts its data and how thorough it is. Tells which file system is measured, because a disk
//! that is no disk makes every figure of durability worthless.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;

/// How long anything may take before the measuring is given up: many at once take longer than one.
pub(crate) const PATIENCE: Duration = rekindle_lab::PATIENCE.saturating_mul(2);

/// What every row needs to know.
pub(crate) struct Context {
    /// Removed with everything in it at the end.
    root: TempDir,
    /// Smaller data and fewer rounds.
    pub(crate) quick: bool,
    /// Cold means the whole machine's page cache.
    pub(crate) drop_caches: bool,
}

impl Context {
    pub(crate) fn new(dir: Option<&Path>, quick: bool, drop_caches: bool) -> anyhow::Result<Context> {
        let dir = dir.map_or_else(target_directory, |dir| Ok(dir.to_owned()))?;
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let root = tempfile::Builder::new().prefix("bench-").tempdir_in(&dir);
        let root = root.with_context(|| format!("cannot make a directory in {}", dir.display()))?;
        Ok(Context { root, quick, drop_caches })
    }

    /// Returns where everything is made.
    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Makes an empty directory that is gone when dropped.
    pub(crate) fn directory(&self) -> anyhow::Result<TempDir> {
        tempfile::tempdir_in(&self.root).context("cannot make a directory for a row")
    }

    /// Returns the first value for a thorough run, the second for a quick one.
    pub(crate) fn pick<T>(&self, thorough: T, quick: T) -> T {
        if self.quick { quick } else { thorough }
    }

    /// Says where the measuring happens.
    pub(crate) fn announce(&self) {
        let system = file_system(self.root.path());
        eprintln!("data in {} ({system})", self.root.path().display());
        if system == "tmpfs" || system == "ramfs" {
            eprintln!("warning: {system} is memory; syncs cost nothing there. Use --dir on a real disk.");
        }
    }

    /// Takes the pages of these files out of memory, or all pages of the machine, and says which.
    pub(crate) fn make_cold(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        if self.drop_caches {
            rustix::fs::sync();
            return fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop the page cache");
        }
        for path in files {
            let file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            // Pages that are not on disk yet would stay.
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Names how files are made cold.
    pub(crate) fn cold_word(&self) -> &'static str {
        if self.drop_caches { "cold (drop_caches)" } else { "cold (fadvise)" }
    }
}

/// The build's own directory: a real disk on most machines, and nobody minds what lies there.
fn target_directory() -> anyhow::Result<PathBuf> {
    let binary = std::env::current_exe().context("cannot tell where this binary is")?;
    let target = binary.parent().and_then(Path::parent).context("this binary has no directory")?;
    Ok(target.to_owned())
}

/// Names the file system of a directory.
fn file_system(dir: &Path) -> String {
    let Ok(found) = rustix::fs::statfs(dir) else { return "unknown file system".into() };
    match found.f_type as u64 {
        0xef53 => "ext4".into(),
        0x0102_1994 => "tmpfs".into(),
        0x8584_58f6 => "ramfs".into(),
        0x5846_5342 => "xfs".into(),
        0x9123_683e => "btrfs".into(),
        0x2fc1_2fc1 => "zfs".into(),
        0x794c_7630 => "overlayfs".into(),
        0x6969 => "nfs".into(),
        other => format!("file system {other:#x}"),
    }
}

/// Says what is going on, on stderr.
pub(crate) fn progress(what: &str) {
    eprintln!("  {what}");
}
