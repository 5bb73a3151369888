//! The stat cache of a root: what each file looked like when it was captured, and what was in it.
//! A file that looks the same is not read again. The cache costs about 100 bytes a file, in memory and on disk; a missing or
//! damaged one costs time and nothing else. When an entry is trusted is decided in `stamp.rs` and by the sink.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rekindle_domain::blob_id::BlobId;

use crate::record::RecordView;

/// What a cache's file begins with.
const MAGIC: &[u8] = b"rkstat1\n";

/// Length of the checksum at the end of the file.
const CHECKSUM_BYTES: usize = 32;

/// Largest cache that is read: ten million files.
const MAX_BYTES: u64 = 2 << 30;

/// What is known of the files below one root from the capture before.
#[derive(Debug, Default, Clone)]
pub struct StatCache {
    bytes: Vec<u8>,
    /// The directories in the order of their paths: where path and record are.
    directories: Vec<(Range<usize>, Range<usize>)>,
    /// States of git indexes, and the hashes of the paths in them.
    repositories: Vec<(Vec<u8>, [u8; 32])>,
}

impl StatCache {
    /// Returns a cache that knows nothing.
    pub fn new() -> StatCache {
        StatCache::default()
    }

    /// Reads a cache from a file; one that is not there, or damaged, knows nothing.
    pub fn load(path: &Path) -> StatCache {
        let read = || -> io::Result<Vec<u8>> {
            let file = File::open(path)?;
            let mut bytes = Vec::with_capacity(file.metadata()?.len().min(MAX_BYTES) as usize);
            file.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().ok().and_then(StatCache::parse).unwrap_or_default()
    }

    /// Writes the cache to a file, whole or not at all: first beside it, then by a rename. Nothing is synced, because a file
    /// that a power cut leaves half written is found by its checksum and costs time only.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut new = OpenOptions::new();
        // Names of files are nobody else's business.
        let mut file = new.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&self.bytes)
            .and_then(|()| fs::rename(&beside, path))
            .inspect_err(|_| _ = fs::remove_file(&beside))
    }

    /// Returns how many directories the cache knows.
    pub fn directories(&self) -> usize {
        self.directories.len()
    }

    /// Puts a cache together. Records are sorted here; two of one directory are not given.
    pub(crate) fn build(
        records: &mut [(Vec<u8>, Vec<u8>)],
        repositories: &[(Vec<u8>, [u8; 32])],
    ) -> StatCache {
        records.sort_unstable();
        let mut bytes = MAGIC.to_vec();
        put_length(&mut bytes, repositories.len());
        for (state, key) in repositories {
            put_bytes(&mut bytes, state);
            bytes.extend_from_slice(key);
        }
        put_length(&mut bytes, records.len());
        for (path, record) in records {
            put_bytes(&mut bytes, path);
            put_bytes(&mut bytes, record);
        }
        let checksum = *BlobId::of(&bytes).as_bytes();
        bytes.extend_from_slice(&checksum);
        // What cannot be read back, a path of more than 4 GiB for example, is not worth knowing.
        StatCache::parse(bytes).unwrap_or_default()
    }

    fn parse(bytes: Vec<u8>) -> Option<StatCache> {
        let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
        let (body, checksum) = bytes.split_at(end);
        if !body.starts_with(MAGIC) || BlobId::of(body).as_bytes() != checksum {
            return None;
        }
        let mut cursor = Cursor { bytes: body, at: MAGIC.len() };
        let mut repositories = Vec::new();
        for _ in 0..cursor.length()? {
            let state = cursor.range()?;
            let key = body.get(cursor.at..cursor.at + CHECKSUM_BYTES)?.try_into().ok()?;
            cursor.at += CHECKSUM_BYTES;
            repositories.push((body[state].to_vec(), key));
        }
        let mut directories = Vec::new();
        for _ in 0..cursor.length()? {
            directories.push((cursor.range()?, cursor.range()?));
        }
        (cursor.at == end).then_some(())?;
        Some(StatCache { directories, repositories, bytes })
    }

    /// Returns what is known of a directory.
    pub(crate) fn directory(&self, path: &[u8]) -> Option<RecordView<'_>> {
        let at = self.directories.binary_search_by(|(known, _)| self.bytes[known.clone()].cmp(path)).ok()?;
        RecordView::new(&self.bytes[self.directories[at].1.clone()])
    }

    /// Returns path and record of every directory, in the order of paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.directories.iter().map(|(path, record)| (&self.bytes[path.clone()], &self.bytes[record.clone()]))
    }

    /// Returns the states of git indexes that were seen.
    pub(crate) fn repositories(&self) -> &[(Vec<u8>, [u8; 32])] {
        &self.repositories
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    put_length(bytes, content.len());
    bytes.extend_from_slice(content);
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn length(&mut self) -> Option<usize> {
        let length = self.bytes.get(self.at..)?.first_chunk::<4>()?;
        self.at += 4;
        Some(u32::from_le_bytes(*length) as usize)
    }

    fn range(&mut self) -> Option<Range<usize>> {
        let length = self.length()?;
        let range = self.at..self.at.checked_add(length)?;
        (range.end <= self.bytes.len()).then_some(())?;
        self.at = range.end;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> StatCache {
        let mut records = vec![(b"b/".to_vec(), vec![2; 100]), (Vec::new(), vec![1; 90])];
        StatCache::build(&mut records, &[(b"index".to_vec(), [9; 32])])
    }

    #[test]
    fn a_cache_is_written_and_read_back() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("root.stat");
        some().save(&path).expect("written");
        some().save(&path).expect("written over");
        let read = StatCache::load(&path);
        assert_eq!((read.directories(), read.repositories()), (2, &[(b"index".to_vec(), [9; 32])][..]));
        assert!(
            read.directory(b"").is_some()
                && read.directory(b"b/").is_some()
                && read.directory(b"c/").is_none()
        );
        assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 1, "nothing is left beside it");
        assert!(some().save(&place.path().join("missing/root.stat")).is_err());
    }

    #[test]
    fn a_missing_or_damaged_cache_knows_nothing() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("root.stat");
        assert_eq!(StatCache::load(&path).directories(), 0);
        assert_eq!(StatCache::load(place.path()).directories(), 0);
        let whole = some().bytes;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            assert!(StatCache::parse(bytes).is_none(), "byte {at} changed");
            assert!(StatCache::parse(whole[..at].to_vec()).is_none(), "cut at {at}");
        }
        // A checksum proves nothing about lengths.
        let mut wrong = whole[..whole.len() - CHECKSUM_BYTES].to_vec();
        wrong[8] = 0xff;
        let checksum = *BlobId::of(&wrong).as_bytes();
        wrong.extend_from_slice(&checksum);
        assert!(StatCache::parse(wrong).is_none());
    }
}
