//! References to blobs, anywhere in a home. Too many names do no harm and one too few loses a payload: every run of 64 hex
//! digits counts, in whichever file that may name blobs and whether the file is damaged or not.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::blobs::BlobId;
use crate::disk::{Disk, EntryKind, OpenMode, if_exists, read_up_to};
use crate::kept_snapshots;
use crate::layout::{LEDGER, Layout};
use crate::line_codec::Codec;
use crate::log::{Cursor, LogForm, LogReader};

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
    referenced_blobs_elsewhere(disk, layout, &|_| false)
}

/// The same, but for files that are passed over: whoever does so has looked into them.
pub fn referenced_blobs_elsewhere(
    disk: &dyn Disk,
    layout: &Layout,
    passes_over: &dyn Fn(&Path) -> bool,
) -> io::Result<BlobReferences> {
    let mut references = BlobReferences::default();
    for entry in disk.list(layout.home())? {
        if entry.kind == EntryKind::Dir && !NOT_THERE.contains(&entry.name.as_str()) {
            let directory = layout.home().join(&entry.name);
            collect_references(disk, &directory, DEPTH, passes_over, &mut references)?;
        }
    }
    Ok(references)
}

/// Adds every blob that a text names.
pub fn add_names(text: &[u8], named: &mut HashSet<BlobId>) {
    let mut run = Vec::with_capacity(DIGITS + 1);
    text.iter().for_each(|byte| push_byte(*byte, &mut run, named));
    push_byte(b' ', &mut run, named);
}

fn collect_references(
    disk: &dyn Disk,
    directory: &Path,
    depth: usize,
    passes_over: &dyn Fn(&Path) -> bool,
    references: &mut BlobReferences,
) -> io::Result<()> {
    // One that is gone was removed since it was listed: its session was deleted, or a segment dropped.
    for entry in if_exists(disk.list(directory))?.unwrap_or_default() {
        let path = directory.join(&entry.name);
        match entry.kind {
            EntryKind::Dir if depth == 0 => references.unreadable.push(path),
            EntryKind::Dir => collect_references(disk, &path, depth - 1, passes_over, references)?,
            EntryKind::File if passes_over(&path) => {}
            EntryKind::File if is_ledger(&entry.name) => {
                if read_ledger(disk, &path, &mut references.referenced).is_err() {
                    references.unreadable.push(path);
                }
            }
            EntryKind::File if is_packed(&entry.name) => {
                match if_exists(kept_snapshots::read_text(disk, &path)) {
                    Ok(Some(Some(text))) => {
                        let mut run = Vec::with_capacity(DIGITS + 1);
                        text.iter()
                            .chain(b" ")
                            .for_each(|byte| push_byte(*byte, &mut run, &mut references.referenced));
                    }
                    // Gone since it was listed: a snapshot that was kept long enough.
                    Ok(None) => {}
                    Ok(Some(None)) | Err(_) => references.unreadable.push(path),
                }
            }
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

/// Tells whether a file is the ledger of a pipeline run, as it was written or compressed.
fn is_ledger(name: &str) -> bool {
    name.strip_suffix(".zst").unwrap_or(name) == LEDGER
}

/// Finds the names in a ledger. One that is gone was compressed since it was listed, or decompressed, or has gone with its run.
fn read_ledger(disk: &dyn Disk, path: &Path, named: &mut HashSet<BlobId>) -> io::Result<()> {
    let plain = path.with_file_name(LEDGER);
    let compressed = path.with_file_name(format!("{LEDGER}.zst"));
    // The other way round a second time: one is removed when the other is there.
    for form in [LogForm::Plain, LogForm::Compressed, LogForm::Plain] {
        let found = match form {
            LogForm::Plain => if_exists(read_references(disk, &plain, named))?,
            LogForm::Compressed => {
                if_exists(LogReader::open_compressed(disk, &compressed, Codec::default()))?
                    .map(|log| match log.cut_short() {
                        Some(damage) => Err(io::Error::new(io::ErrorKind::InvalidData, damage.to_string())),
                        None => references_in(&mut log.stored(Cursor::START, log.end()), named),
                    })
                    .transpose()?
            }
        };
        if found.is_some() {
            break;
        }
    }
    Ok(())
}

/// Tells whether names in a file cannot be seen as it is.
fn is_packed(name: &str) -> bool {
    [".zst", ".gz", ".age", ".enc"].iter().any(|suffix| name.ends_with(suffix))
}

/// Finds the names of blobs in whatever a reader gives.
pub fn references_in(reader: &mut dyn io::Read, named: &mut HashSet<BlobId>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut run = Vec::with_capacity(DIGITS + 1);
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            read => buffer[..read].iter().for_each(|byte| push_byte(*byte, &mut run, named)),
        }
    }
    push_byte(b' ', &mut run, named);
    Ok(())
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
