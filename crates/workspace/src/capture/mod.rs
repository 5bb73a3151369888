//! Capture: a directory becomes tree objects and contents in a sink.
//! Several threads share a stack of directories (`pool`); each lists one (`listing`), reads what is new in it (`read`), and
//! whoever finishes the last part of a directory makes its tree (`worker`, `node`). What is in memory at a time is the directories
//! from the root to where the threads are, not the tree.

mod listing;
mod node;
mod open;
mod pool;
mod read;
mod unchanged_directory;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::blob_id::BlobId;
use serde::Serialize;

use crate::objects::ObjectSink;
use crate::path_name::PathName;
use crate::rules::{DirRules, GitHead, Lists, Repository, Selection, hash_rules};
use crate::skipped::{MAX_TOLD, MAX_TOLD_BYTES, Skip, SkipReason, Skipped};
use crate::stat_cache::StatCache;
use node::{Node, Task};
use open::Root;
use pool::Pool;
use worker::{Output, Worker};

/// Largest file that is captured unless another limit is asked for.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Most threads: beyond this the disk or the sink is what everybody waits for.
const MAX_THREADS: usize = 16;

/// What to capture, and how.
#[derive(Clone)]
pub struct CaptureOptions<'a> {
    /// The directory. It is opened as it is named, through links too; below it no link is followed.
    pub root: PathBuf,
    /// The lists of the user's configuration.
    pub selection: Selection,
    /// Larger files are skipped.
    pub max_file: u64,
    /// The home of Rekindle, which is no part of any workspace around it.
    pub home: Option<PathBuf>,
    /// Directories of other sessions: those below the root are skipped.
    pub others: Vec<PathBuf>,
    /// More files than this, and the capture fails with [`CaptureError::OverLimit`].
    pub max_files: u64,
    /// More bytes of contents than this, and the capture fails likewise.
    pub max_bytes: u64,
    /// How many threads; as many as there are processors if not said.
    pub threads: Option<usize>,
    /// Asked now and then: true ends the capture with [`CaptureError::Stopped`].
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl CaptureOptions<'_> {
    /// Returns the options of a capture that takes everything below a directory.
    pub fn new(root: impl Into<PathBuf>) -> CaptureOptions<'static> {
        CaptureOptions {
            root: root.into(),
            selection: Selection::default(),
            max_file: MAX_FILE_BYTES,
            home: None,
            others: Vec::new(),
            max_files: u64::MAX,
            max_bytes: u64::MAX,
            threads: None,
            stop: &|| false,
        }
    }
}

/// What a tree amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regular files.
    pub files: u64,
    /// Symbolic links.
    pub links: u64,
    /// Directories below the root.
    pub directories: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.files += other.files;
        self.links += other.links;
        self.directories += other.directories;
        self.bytes += other.bytes;
    }
}

/// What a capture found.
#[derive(Debug)]
pub struct Captured {
    /// The tree hash.
    pub tree: BlobId,
    /// What the tree amounts to.
    pub totals: Totals,
    /// Files that were read; the others are known from the stat cache.
    pub files_read: u64,
    /// What was left out although the rules include it.
    pub skipped: Skipped,
    /// HEAD of the repository around the root, if there is one.
    pub git: Option<GitHead>,
    /// The hash of the rules.
    pub rules: BlobId,
    /// What could not be understood, for people: patterns, an index.
    pub notes: Vec<String>,
    /// The cache for the next capture; none if the one that was given says it all.
    pub cache: Option<StatCache>,
}

/// Why there is no capture. Nothing that one file does is a reason.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The root is not there, no directory, or may not be read.
    #[error("cannot capture {}: it cannot be read as a directory", root.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// This process or the machine is short of something, so that files would be missing for no fault of theirs.
    #[error("cannot read {}", path.display())]
    Exhausted {
        /// What was being read.
        path: PathBuf,
        /// What there is too little of.
        #[source]
        source: io::Error,
    },
    /// The sink could not keep an object.
    #[error("cannot keep the content of {}", path.display())]
    Sink {
        /// Whose content it is.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is more in the directory than was allowed.
    #[error("the directory has more than {max_files} files or {max_bytes} bytes")]
    OverLimit {
        /// The limit of files.
        max_files: u64,
        /// The limit of bytes.
        max_bytes: u64,
    },
    /// The caller asked for the end.
    #[error("the capture was stopped before it was complete")]
    Stopped {
        /// The cache with what was done until then. If the sink keeps what it was given, the next capture goes on from there,
        /// so that a directory that takes too long for one capture is captured by several.
        cache: Option<Box<StatCache>>,
    },
}

/// What all threads of a capture share.
struct Shared<'a> {
    options: &'a CaptureOptions<'a>,
    root: Root,
    sink: &'a dyn ObjectSink,
    cache: &'a StatCache,
    pool: Pool<Task<'a>>,
    /// Directories that are not entered, by device and inode, and what is said of them.
    apart: Vec<((u64, u64), Option<SkipReason>)>,
    repositories: Mutex<Vec<Arc<Repository>>>,
    finished: Mutex<Option<(BlobId, Totals)>>,
    failed: Mutex<Option<CaptureError>>,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// Captures a directory: contents and tree objects go to the sink, the result says what they are.
///
/// What the sink was given before an error, or before a crash, is named by nothing and for the collector.
pub fn capture(
    options: &CaptureOptions<'_>,
    sink: &dyn ObjectSink,
    cache: &StatCache,
) -> Result<Captured, CaptureError> {
    let unreadable = |source: io::Error| CaptureError::Root { root: options.root.clone(), source };
    let absolute = options.root.canonicalize().map_err(unreadable)?;
    let root = Root::open(&absolute).map_err(|error| unreadable(error.into()))?;
    let (lists, mut notes) = Lists::new(&options.selection);
    let lists = Arc::new(lists);
    let repository = Repository::around(&absolute).map(Arc::new);
    if let Some(repository) = &repository {
        repository.remember(cache.repositories());
    }
    let git = repository.as_ref().map(|repository| repository.head());
    let rules = Arc::new(DirRules::above_root(Arc::clone(&lists), repository.clone()));
    let shared = Shared {
        options,
        root,
        sink,
        cache,
        pool: Pool::new(),
        apart: apart(options),
        repositories: Mutex::new(repository.into_iter().collect()),
        finished: Mutex::default(),
        failed: Mutex::default(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    shared.pool.push([Task::Directory(Arc::new(Node::root(rules)))]);
    let mut output = run(&shared);
    if let Some(error) = take(&shared.failed) {
        return Err(match error {
            CaptureError::Stopped { .. } => {
                CaptureError::Stopped { cache: partial_cache(cache, output.records).map(Box::new) }
            }
            error => error,
        });
    }
    let gone = || unreadable(io::ErrorKind::NotFound.into());
    let (tree, totals) = take(&shared.finished).ok_or_else(gone)?;
    let repositories = shared.repositories.into_inner().unwrap_or_else(PoisonError::into_inner);
    notes.append(&mut output.notes);
    notes.extend(repositories.iter().filter_map(|repository| repository.note().map(str::to_owned)));
    Ok(Captured {
        tree,
        totals,
        files_read: output.files_read,
        skipped: skipped(&mut output.skips, sink)?,
        git,
        rules: hash_rules(&lists, &mut output.ignore_files),
        notes,
        cache: next_cache(cache, output.records, &repositories),
    })
}

/// Runs the threads to their end and returns what they gathered.
fn run(shared: &Shared<'_>) -> Output {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = shared.options.threads.unwrap_or_else(cores).clamp(1, MAX_THREADS);
    let mut output = Output::default();
    std::thread::scope(|scope| {
        let spawn = |index| {
            std::thread::Builder::new()
                .name(format!("capture-{index}"))
                .spawn_scoped(scope, || Worker::new(shared).work())
        };
        // A thread that the system refuses is done without.
        let others: Vec<_> = (1..threads).map_while(|index| spawn(index).ok()).collect();
        output.add(Worker::new(shared).work());
        for thread in others {
            output.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    output
}

impl Shared<'_> {
    /// Counts what was found and fails beyond the limits.
    fn count(&self, files: u64, bytes: u64) -> Result<(), CaptureError> {
        let CaptureOptions { max_files, max_bytes, .. } = *self.options;
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if files > max_files || bytes > max_bytes {
            return Err(CaptureError::OverLimit { max_files, max_bytes });
        }
        Ok(())
    }

    /// Ends the capture; the first reason stays.
    fn fail(&self, error: CaptureError) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.pool.stop();
    }

    fn absolute(&self, path: &[u8]) -> PathBuf {
        self.root.path().join(crate::as_path(path))
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns the identities of the home and of other sessions' directories.
fn apart(options: &CaptureOptions<'_>) -> Vec<((u64, u64), Option<SkipReason>)> {
    let identity = |path: &Path| rustix::fs::stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let home = options.home.as_deref().and_then(identity).map(|home| (home, None));
    let others =
        options.others.iter().filter_map(|other| Some((identity(other)?, Some(SkipReason::Worktree))));
    home.into_iter().chain(others).collect()
}

#[derive(Serialize)]
struct SkipLine {
    #[serde(flatten)]
    path: PathName,
    reason: SkipReason,
}

fn skipped(skips: &mut [Skip], sink: &dyn ObjectSink) -> Result<Skipped, CaptureError> {
    skips.sort_unstable();
    let mut skipped = Skipped::default();
    for skip in skips.iter() {
        *skipped.totals.entry(skip.reason).or_default() += 1;
    }
    let mut bytes = 0;
    let within = |skip: &&Skip| {
        bytes += skip.path.len();
        bytes <= MAX_TOLD_BYTES
    };
    let told = skips.iter().take(MAX_TOLD).take_while(within).count();
    if told < skips.len() {
        let mut lines = Vec::new();
        for skip in skips.iter() {
            let line = SkipLine { path: PathName::from(skip.path.as_slice()), reason: skip.reason };
            serde_json::to_writer(&mut lines, &line).expect("plain text becomes JSON");
            lines.push(b'\n');
        }
        let failed = |source| CaptureError::Sink { path: "(skipped paths)".into(), source };
        skipped.all = Some(sink.put(&lines).map_err(failed)?);
    }
    skipped.first = skips[..told].to_vec();
    Ok(skipped)
}

/// Returns the cache for the next capture, unless the last one says the same.
fn next_cache(
    cache: &StatCache,
    records: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    repositories: &[Arc<Repository>],
) -> Option<StatCache> {
    let mut indexes: Vec<_> = repositories.iter().filter_map(|repository| repository.memory()).collect();
    indexes.sort_unstable();
    indexes.dedup();
    let is_same = records.iter().all(|(_, record)| record.is_none())
        && records.len() == cache.directories()
        && indexes == cache.repositories();
    if is_same {
        return None;
    }
    let old = |path: &[u8]| cache.directory(path).map(|record| record.bytes().to_vec());
    let whole = |(path, record): (Vec<u8>, Option<Vec<u8>>)| {
        let record = record.or_else(|| old(&path))?;
        Some((path, record))
    };
    let mut records: Vec<_> = records.into_iter().filter_map(whole).collect();
    Some(StatCache::build(&mut records, &indexes))
}

/// Returns the last cache with what a capture added to it before it was stopped, if it did.
fn partial_cache(cache: &StatCache, records: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Option<StatCache> {
    let new = records.into_iter().filter_map(|(path, record)| Some((path, record?)));
    let mut all: BTreeMap<Vec<u8>, Vec<u8>> = new.collect();
    if all.is_empty() {
        return None;
    }
    for (path, record) in cache.iter() {
        all.entry(path.to_vec()).or_insert_with(|| record.to_vec());
    }
    let mut records: Vec<_> = all.into_iter().collect();
    Some(StatCache::build(&mut records, cache.repositories()))
}

#[cfg(test)]
mod tests;
