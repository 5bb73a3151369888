//! References to blobs, anywhere in a home. Too many names do no harm and one too few loses a payload: every run of 64 hex
//! digits counts, in whichever file that may name blobs and whether the file is damaged or not.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::blobs::BlobId;
use crate::disk::{Disk, EntryKind, OpenMode, if_exists, read_up_to};
use crate::layout::Layout;

/// How much is read at a time.
const CHUNK: usize = 1 << 20;

/// The digits of a name.
const DIGITS: usize = 64;

/// How deep below the home is looked: our own trees are not deeper.
const DEPTH: usize = 8;

/// What cannot name blobs: they themselves, programs, what agents say before it is in a log, and what the daemon says.
const NOT_THERE: &[&str] = &["blobs", "bin", "holders", "logs"];

/// The references to blobs in a home.
#[derive(Debug, Default)]
pub struct BlobReferences {
    /// Every blob that is named.
    pub referenced: HashSet<BlobId>,
    /// Files that may name blobs and cannot be read.
    pub unreadable: Vec<PathBuf>,
}

/// Looks for the names of blobs in everything that may have some. Someone may be writing to the home: what they keep while
/// this looks is young, and nobody collects what is young.
pub fn referenced_blobs(disk: &dyn Disk, layout: &Layout) -> io::Result<BlobReferences> {
    let mut references = BlobReferences::default();
    for entry in disk.list(layout.home())? {
        if entry.kind == EntryKind::Dir && !NOT_THERE.contains(&entry.name.as_str()) {
            collect_references(disk, &layout.home().join(&entry.name), DEPTH, &mut references)?;
        }
    }
    Ok(references)
}

fn collect_references(
    disk: &dyn Disk,
    directory: &Path,
    depth: usize,
    references: &mut BlobReferences,
) -> io::Result<()> {
    // One that is gone was removed since it was listed: its session was deleted, or a segment dropped.
    for entry in if_exists(disk.list(directory))?.unwrap_or_default() {
        let path = directory.join(&entry.name);
        match entry.kind {
            EntryKind::Dir if depth == 0 => references.unreadable.push(path),
            EntryKind::Dir => collect_references(disk, &path, depth - 1, references)?,
            EntryKind::File if is_packed(&entry.name) => references.unreadable.push(path),
            EntryKind::File => {
                if if_exists(read_references(disk, &path, &mut references.referenced)).is_err() {
                    references.unreadable.push(path);
                }
            }
            EntryKind::Other => {}
        }
    }
    Ok(())
}

/// Tells whether names in a file could not be seen.
fn is_packed(name: &str) -> bool {
    [".zst", ".gz", ".age", ".enc"].iter().any(|suffix| name.ends_with(suffix))
}

fn read_references(disk: &dyn Disk, path: &Path, named: &mut HashSet<BlobId>) -> io::Result<()> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut buffer = vec![0; CHUNK];
    let (mut run, mut at) = (Vec::with_capacity(DIGITS + 1), 0);
    loop {
        let read = read_up_to(&*file, &mut buffer, at)?;
        if read == 0 {
            break;
        }
        at += read as u64;
        buffer[..read].iter().for_each(|byte| push_byte(*byte, &mut run, named));
    }
    push_byte(b' ', &mut run, named);
    Ok(())
}

/// Takes in a byte; behind a run of exactly 64 digits there was a name.
fn push_byte(byte: u8, run: &mut Vec<u8>, named: &mut HashSet<BlobId>) {
    if matches!(byte, b'0'..=b'9' | b'a'..=b'f') {
        // A longer run is no name; one digit more is enough to know.
        if run.len() <= DIGITS {
            run.push(byte);
        }
        return;
    }
    if run.len() == DIGITS
        && let Some(id) = std::str::from_utf8(run).ok().and_then(|text| text.parse().ok())
    {
        named.insert(id);
    }
    run.clear();
}
