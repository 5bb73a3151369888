//! The names in a directory, sorted, without those that are never part of a workspace.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use super::open::{is_gone, retry};
use crate::record::{Known, RecordView};
use crate::rules::is_temporary;
use crate::tree::check_name;

/// Size of the buffer for directory entries: a few hundred names for each call.
pub(super) const BUFFER_BYTES: usize = 32 << 10;

/// The names in one directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// There is a `.git`.
    pub(super) has_git: bool,
    /// Names that no tree may have.
    pub(super) refused: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    start: usize,
    length: usize,
    kind: FileType,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the name and type at a place in the order of names.
    pub(super) fn get(&self, index: usize) -> (&[u8], FileType) {
        let slot = self.slots[index];
        (self.name(slot), slot.kind)
    }

    fn name(&self, slot: Slot) -> &[u8] {
        &self.bytes[slot.start..slot.start + slot.length]
    }

    /// Returns the type of what has a name.
    pub(super) fn kind_of(&self, name: &[u8]) -> Option<FileType> {
        let at = self.slots.binary_search_by(|slot| self.name(*slot).cmp(name)).ok()?;
        Some(self.slots[at].kind)
    }

    /// Returns the bytes of all names together.
    pub(super) fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn add(&mut self, name: &[u8], kind: FileType) {
        self.slots.push(Slot { start: self.bytes.len(), length: name.len(), kind });
        self.bytes.extend_from_slice(name);
    }
}

/// Returns the names that are in a record: those of a directory that has not changed since.
pub(super) fn recorded(record: &RecordView<'_>) -> Names {
    let mut names = Names::default();
    names.bytes.reserve(record.bytes().len() / 4);
    for (name, known) in record.entries() {
        let kind = match known {
            Known::Directory { .. } | Known::IgnoredDirectory => FileType::Directory,
            Known::Link(_) => FileType::Symlink,
            // What is ignored may be anything else; only what is not would have to be known.
            Known::File(..) | Known::Unsettled | Known::Ignored => FileType::RegularFile,
        };
        names.add(name, kind);
    }
    names
}

/// Lists a directory.
pub(super) fn list(directory: &OwnedFd, buffer: &mut Vec<u8>) -> rustix::io::Result<Names> {
    let mut names = Names::default();
    buffer.clear();
    buffer.reserve(BUFFER_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        let name = entry.file_name().to_bytes();
        match name {
            b"." | b".." => {}
            b".git" => names.has_git = true,
            _ if is_temporary(name) => {}
            _ if check_name(name).is_err() => names.refused.push(name.to_vec()),
            _ => names.add(name, entry.file_type()),
        }
    }
    // Some file systems do not say what an entry is.
    for index in 0..names.slots.len() {
        if names.slots[index].kind == FileType::Unknown {
            let name = names.name(names.slots[index]);
            match retry(|| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)) {
                Ok(stat) => names.slots[index].kind = FileType::from_raw_mode(stat.st_mode),
                // Whoever looks at it as at a file finds out.
                Err(error) if is_gone(error) => names.slots[index].kind = FileType::RegularFile,
                Err(error) => return Err(error),
            }
        }
    }
    let Names { bytes, slots, .. } = &mut names;
    let name = |slot: &Slot| &bytes[slot.start..slot.start + slot.length];
    slots.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    // A file system that lists a name twice while it is renamed would otherwise make two entries of it.
    slots.dedup_by(|a, b| name(a) == name(b));
    Ok(names)
}
