//! One directory in the stat cache: the key of its rules, its tree, its own stamp, and its entries as they were found, in the
//! order of names. The entries are a function of what was found: equal ones mean that nothing changed, and the same tree.

use std::cmp::Ordering;
use std::ops::Range;

use rekindle_domain::blob_id::BlobId;

use crate::rules::Decision;
use crate::stamp::{DirectoryStamp, FileStamp};

/// What was found under one name of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing that counts: it vanished, or was skipped.
    Nothing,
    /// A file, link or special file that the rules leave out.
    Ignored,
    /// A directory that the rules leave out.
    IgnoredDirectory,
    /// A file.
    File {
        stamp: FileStamp,
        content: BlobId,
        /// It cannot change any more without its stamp changing too.
        is_settled: bool,
    },
    /// A link with its target.
    Link(Box<[u8]>),
    /// A directory; its tree comes when everything below is done, and never if it vanished or was skipped.
    Directory { only_listed: bool, tree: Option<BlobId> },
}

/// Where the directory's stamp is, behind the key of the rules and the tree.
const STAMP: Range<usize> = 64..64 + DirectoryStamp::BYTES;

/// Bytes before the first entry.
const HEAD_BYTES: usize = STAMP.end;

/// Writes a record. Files that are not settled are only remembered as files that count.
pub(crate) struct RecordWriter(Vec<u8>);

impl RecordWriter {
    pub(crate) fn new(rules: &[u8; 32], capacity: usize) -> RecordWriter {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + capacity);
        bytes.extend_from_slice(rules);
        bytes.resize(HEAD_BYTES, 0);
        RecordWriter(bytes)
    }

    pub(crate) fn push(&mut self, name: &[u8], found: &Found) {
        let kind = match found {
            Found::Nothing | Found::Directory { tree: None, .. } => return,
            Found::Ignored => b'i',
            Found::IgnoredDirectory => b'I',
            Found::File { is_settled: true, .. } => b'f',
            Found::File { is_settled: false, .. } => b'u',
            Found::Link(_) => b'l',
            Found::Directory { only_listed: false, .. } => b'd',
            Found::Directory { only_listed: true, .. } => b'o',
        };
        self.0.push(kind);
        self.put(name);
        match found {
            Found::File { stamp, content, is_settled: true } => {
                self.0.extend_from_slice(&stamp.size.to_le_bytes());
                self.0.extend_from_slice(&stamp.mtime_ns.to_le_bytes());
                self.0.extend_from_slice(&stamp.ctime_ns.to_le_bytes());
                self.0.extend_from_slice(&stamp.inode.to_le_bytes());
                self.0.extend_from_slice(&stamp.mode.to_le_bytes());
                self.0.extend_from_slice(content.as_bytes());
            }
            Found::Link(target) => self.put(target),
            Found::Directory { tree: Some(tree), .. } => self.0.extend_from_slice(tree.as_bytes()),
            _ => {}
        }
    }

    /// Names and targets have at most a few thousand bytes.
    fn put(&mut self, text: &[u8]) {
        self.0.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.0.extend_from_slice(text);
    }

    /// Returns true if a record has the same entries under the same rules, and so the same tree.
    pub(crate) fn is_same_as(&self, record: &RecordView<'_>) -> bool {
        self.0.len() == record.0.len()
            && self.0[..32] == record.0[..32]
            && self.0[HEAD_BYTES..] == record.0[HEAD_BYTES..]
    }

    /// Returns the record, with the stamp of the directory if its names are all in it and its stamp can be trusted.
    pub(crate) fn finish(mut self, tree: &BlobId, stamp: Option<DirectoryStamp>) -> Vec<u8> {
        self.0[32..STAMP.start].copy_from_slice(tree.as_bytes());
        if let Some(stamp) = stamp {
            self.0[STAMP].copy_from_slice(&stamp.0);
        }
        self.0
    }
}

/// A record in a cache. One that is not valid has no entries from there on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordView<'a>(&'a [u8]);

/// What is known of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    Ignored,
    IgnoredDirectory,
    File(FileStamp, BlobId),
    /// A file that counts, with nothing known of its content.
    Unsettled,
    Link(&'a [u8]),
    Directory {
        only_listed: bool,
    },
}

impl Known<'_> {
    /// Returns whether it is a directory, and what was decided about it.
    pub(crate) fn decision(&self) -> (bool, Decision) {
        match self {
            Known::Ignored => (false, Decision::Ignore),
            Known::IgnoredDirectory => (true, Decision::Ignore),
            Known::File(..) | Known::Unsettled | Known::Link(_) => (false, Decision::Include),
            Known::Directory { only_listed: false } => (true, Decision::Include),
            Known::Directory { only_listed: true } => (true, Decision::OnlyListed),
        }
    }
}

impl<'a> RecordView<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Option<RecordView<'a>> {
        (bytes.len() >= HEAD_BYTES).then_some(RecordView(bytes))
    }

    pub(crate) fn rules(&self) -> &'a [u8] {
        &self.0[..32]
    }

    pub(crate) fn tree(&self) -> BlobId {
        BlobId::from_bytes(self.0[32..STAMP.start].try_into().expect("32 bytes"))
    }

    /// Returns the directory's stamp, if nothing but the names in this record was there as long as it stays the same.
    pub(crate) fn stamp(&self) -> Option<DirectoryStamp> {
        let bytes: [u8; DirectoryStamp::BYTES] =
            self.0[STAMP].try_into().expect("as many bytes as a stamp has");
        (bytes != [0; DirectoryStamp::BYTES]).then_some(DirectoryStamp(bytes))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the entries in the order of their names.
    pub(crate) fn entries(&self) -> RecordEntries<'a> {
        RecordEntries(&self.0[HEAD_BYTES..])
    }
}

/// The entries of a record, in order.
#[derive(Debug, Clone)]
pub(crate) struct RecordEntries<'a>(&'a [u8]);

impl<'a> RecordEntries<'a> {
    /// Goes to the first entry that is not before a name.
    pub(crate) fn skip_before(&mut self, name: &[u8]) {
        let mut ahead = self.clone();
        while ahead.next().is_some_and(|(known, _)| known < name) {
            *self = ahead.clone();
        }
    }

    /// Returns what is known of a name; names are asked for in order.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<Known<'a>> {
        loop {
            let mut ahead = self.clone();
            let (known_name, known) = ahead.next()?;
            match known_name.cmp(name) {
                Ordering::Less => *self = ahead,
                Ordering::Equal => {
                    *self = ahead;
                    return Some(known);
                }
                Ordering::Greater => return None,
            }
        }
    }

    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(*self.take()?) as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn id(&mut self) -> Option<BlobId> {
        self.take().map(|bytes| BlobId::from_bytes(*bytes))
    }
}

impl<'a> Iterator for RecordEntries<'a> {
    type Item = (&'a [u8], Known<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let [kind] = *self.take()?;
        let name = self.text()?;
        let known = match kind {
            b'i' => Known::Ignored,
            b'I' => Known::IgnoredDirectory,
            b'u' => Known::Unsettled,
            b'l' => Known::Link(self.text()?),
            b'd' | b'o' => {
                self.id()?;
                Known::Directory { only_listed: kind == b'o' }
            }
            b'f' => {
                let stamp = FileStamp {
                    size: u64::from_le_bytes(*self.take()?),
                    mtime_ns: i64::from_le_bytes(*self.take()?),
                    ctime_ns: i64::from_le_bytes(*self.take()?),
                    inode: u64::from_le_bytes(*self.take()?),
                    mode: u32::from_le_bytes(*self.take()?),
                };
                Known::File(stamp, self.id()?)
            }
            _ => return None,
        };
        Some((name, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_known_the_next_time() {
        let stamp = FileStamp { size: 1, mtime_ns: -2, ctime_ns: 3, inode: u64::MAX, mode: 0o100_644 };
        let id = BlobId::of(b"x");
        let found = [
            ("a", Found::Ignored),
            ("b", Found::IgnoredDirectory),
            ("c", Found::File { stamp, content: id, is_settled: true }),
            ("d", Found::File { stamp, content: id, is_settled: false }),
            ("e", Found::Link(b"to".as_slice().into())),
            ("f", Found::Directory { only_listed: false, tree: Some(id) }),
            ("g", Found::Directory { only_listed: true, tree: Some(id) }),
            ("h", Found::Directory { only_listed: true, tree: None }),
            ("i", Found::Nothing),
        ];
        let write = || {
            let mut writer = RecordWriter::new(&[7; 32], 0);
            found.iter().for_each(|(name, found)| writer.push(name.as_bytes(), found));
            writer
        };
        let place = DirectoryStamp::of(&stamp);
        let bytes = write().finish(&id, Some(place));
        let record = RecordView::new(&bytes).expect("a record");
        assert_eq!((record.rules(), record.tree(), record.stamp()), ([7; 32].as_slice(), id, Some(place)));
        assert_eq!(RecordView::new(&write().finish(&id, None)).and_then(|record| record.stamp()), None);
        let known: Vec<Known<'_>> = record.entries().map(|(_, known)| known).collect();
        let directory = |only_listed| Known::Directory { only_listed };
        assert_eq!(
            known,
            [
                Known::Ignored,
                Known::IgnoredDirectory,
                Known::File(stamp, id),
                Known::Unsettled,
                Known::Link(b"to"),
                directory(false),
                directory(true)
            ]
        );
        assert!(write().is_same_as(&record));
        let mut other = write();
        other.push(b"j", &Found::Ignored);
        assert!(!other.is_same_as(&record));
        // Cut anywhere, it yields what is whole and ends.
        for end in HEAD_BYTES..bytes.len() {
            assert!(RecordView::new(&bytes[..end]).expect("a head").entries().count() < known.len());
        }
    }
}
