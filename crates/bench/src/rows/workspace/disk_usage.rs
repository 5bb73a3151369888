//! Bytes on disk for many captures of a directory in which a few files change each time. Raw: what is new each time, contents
//! and trees, each compressed with zstd at level 3, and nothing else.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context as _;
use rekindle_domain::blob_id::BlobId;
use rekindle_workspace::{CaptureOptions, ObjectSink, StatCache, capture};

use super::{generated_files, snapshot, workspaces};
use crate::context::{Context, progress};
use crate::measure::Rounds;
use crate::table::{Row, Target, Unit};

/// Files that change between two captures.
const CHANGED: usize = 3;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (files, captures) = context.pick((2_000, 1_000), (500, 100));
    let dir = context.directory()?;
    let (root, home) = (dir.path().join("files"), dir.path().join("home"));
    let workspaces = workspaces(&home)?;
    generated_files::make(&root, files)?;
    let (counted, mut cache) = (Counted::default(), StatCache::new());
    let mut capture_raw = || {
        let captured = capture(&CaptureOptions::new(&root), &counted, &cache).context("cannot capture")?;
        cache = captured.cache.unwrap_or_default();
        anyhow::Ok(())
    };
    capture_raw()?;
    snapshot(&workspaces, &root)?;
    let blobs = home.join("blobs");
    let before = (counted.bytes()?, size(&blobs)?);
    progress(&format!("measuring bytes of {captures} captures with {CHANGED} changed files each"));
    for round in 0..captures {
        generated_files::change(&root, files, CHANGED, round as u64)?;
        capture_raw()?;
        snapshot(&workspaces, &root)?;
    }
    let (raw, ours) = (counted.bytes()? - before.0, size(&blobs)? - before.1);
    let bytes = Rounds { raw: vec![raw as f64], ours: vec![ours as f64] };
    let what = format!("bytes of {captures} captures, {CHANGED} files changed each");
    Ok(vec![Row::compared(what, Unit::Bytes, &bytes, Target::RatioAtMost(1.2))])
}

/// Returns how many bytes the files below a directory have.
fn size(directory: &Path) -> anyhow::Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        size += if metadata.is_dir() { self::size(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}

/// A sink that keeps nothing: it counts what every new object takes when it is compressed.
#[derive(Default)]
struct Counted(Mutex<(HashSet<BlobId>, u64)>);

impl Counted {
    fn bytes(&self) -> anyhow::Result<u64> {
        Ok(self.0.lock().ok().context("a capture panicked")?.1)
    }
}

impl ObjectSink for Counted {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = BlobId::of(bytes);
        let mut counted = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
        if counted.0.insert(id) {
            counted.1 += zstd::bulk::compress(bytes, 3)?.len() as u64;
        }
        Ok(id)
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        Ok((self.put(&bytes)?, bytes.len() as u64))
    }

    fn reuse(&self, id: &BlobId) -> bool {
        self.0.lock().is_ok_and(|counted| counted.0.contains(id))
    }
}
