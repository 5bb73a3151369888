//! Directories: captured, captured again, restored and carried away, beside git, and beside tar and zstd, on the same files.

pub(crate) mod disk_usage;
pub(crate) mod export;
pub(crate) mod first_capture;
mod generated_files;
mod git;
pub(crate) mod incremental_capture;
pub(crate) mod restore;
pub(crate) mod warm_capture;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rekindle_service::workspaces::Workspaces;
use rekindle_store::disk::RealDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_workspace::{CaptureOptions, Captured};

use self::generated_files::{FILES, FILES_QUICK};
use crate::context::{Context, progress};

/// Tells whether the programs that are compared with are there.
pub(crate) fn check() -> anyhow::Result<()> {
    for program in ["git", "tar", "zstd"] {
        let found = Command::new(program).arg("--version").output();
        ensure!(found.is_ok_and(|found| found.status.success()), "{program} is not installed");
    }
    Ok(())
}

/// Makes the workspaces of a new home.
pub(crate) fn workspaces(home: &Path) -> anyhow::Result<Workspaces> {
    let (disk, layout) = (Arc::new(RealDisk), Layout::new(home));
    home::prepare(&*disk, &layout).context("cannot make a home")?;
    Ok(Workspaces::new(disk, layout))
}

/// Captures a directory: on disk, and kept by name, when this returns.
fn snapshot(workspaces: &Workspaces, root: &Path) -> anyhow::Result<Captured> {
    workspaces.snapshot(CaptureOptions::new(root)).context("cannot capture")
}

/// A directory to capture, and what it is called in the table.
struct Subject {
    what: String,
    root: std::path::PathBuf,
}

/// Makes the directories that are measured: many files, and the files of this repository if it is there.
fn subjects(context: &Context, below: &Path) -> anyhow::Result<Vec<Subject>> {
    let files = context.pick(FILES, FILES_QUICK);
    let root = below.join("made-up");
    progress(&format!("making {files} files"));
    generated_files::make(&root, files)?;
    let mut subjects = vec![Subject { what: format!("{files} files"), root }];
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let root = below.join("repository");
    if git::export(repository, &root).is_ok() {
        subjects.push(Subject { what: "this repository".into(), root });
    }
    Ok(subjects)
}

/// Packs a directory into one synced file.
fn tar(root: &Path, packed: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    let tar = tar.arg("-cf").arg("-").arg("-C").arg(root).arg(".");
    let mut tar = tar.stdout(Stdio::piped()).spawn().context("cannot run tar")?;
    let output = tar.stdout.take().context("tar has no output")?;
    let mut zstd = Command::new("zstd");
    let zstd = zstd.args(["-3", "-q", "-f", "-o"]).arg(packed).arg("-").stdin(output).status();
    ensure!(zstd.context("cannot run zstd")?.success() && tar.wait()?.success(), "tar or zstd failed");
    Ok(File::open(packed)?.sync_all()?)
}
