//! Restores as a whole: on a simulated file system that crashes, and in real directories.
//! `things.rs` describes directories, `sim.rs` is the simulation, `tapped.rs` lets a test step between two operations.

mod crash;
mod decisions;
mod hostile;
mod random;
mod real;
mod sim;
mod tapped;
pub(super) mod things;
mod with_capture;

use std::cell::RefCell;
use std::io;

use rekindle_domain::blob_id::BlobId;

use super::*;
use crate::objects::MemoryObjects;
use crate::tree::Limits;

/// Returns a temporary directory, in memory where the machine has a place for that: on a disk that others are busy with, every
/// rename over a file waits for them.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// A journal in memory.
#[derive(Default)]
struct MemoryJournal(RefCell<Option<Journal>>);

impl JournalFile for MemoryJournal {
    fn read(&self) -> io::Result<Option<Journal>> {
        Ok(self.0.borrow().clone())
    }

    fn write(&self, journal: &Journal) -> io::Result<()> {
        *self.0.borrow_mut() = Some(journal.clone());
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        *self.0.borrow_mut() = None;
        Ok(())
    }
}

/// The rules of these tests: everything whose name begins with `ignored` is, and so is what is below it.
fn ignores(path: &[u8], _is_dir: bool) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name.starts_with(b"ignored"))
}

fn ignores_nothing(_path: &[u8], _is_dir: bool) -> bool {
    false
}

/// A side that ignores by [`ignores`] and skipped nothing.
fn side(tree: BlobId) -> Side<'static> {
    static NONE: std::sync::OnceLock<SkippedPaths> = std::sync::OnceLock::new();
    Side { tree, ignores: &ignores, skipped: NONE.get_or_init(SkippedPaths::default), git_head: None }
}

/// Captures a root and restores a tree in it.
fn restore_to(
    root: &dyn Root,
    objects: &MemoryObjects,
    journal: &dyn JournalFile,
    wanted: BlobId,
) -> Result<Restored, RestoreError> {
    let tools = Tools { root, source: objects, sink: objects, journal, limits: Limits::default() };
    let now = things::capture(root, objects);
    restore(&tools, &side(now), &side(wanted))
}
