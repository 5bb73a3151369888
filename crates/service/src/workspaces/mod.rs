//! Workspaces of a home: directories are captured into the blob store, kept by a manifest each, listed and compared. Works beside a
//! daemon and without one: whoever collects objects is kept out by the lock of the batch until the manifest is on disk.

mod capture_record;
pub(crate) mod checkpoint_record;
mod crash_point_root;
pub(crate) mod git;
mod git_worktree;
mod objects;
mod restore;
mod restore_journal;
mod restore_objects;
mod restore_receipt;
pub mod session_worktree;
#[cfg(test)]
mod test_repository;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::RunCheckpoint;
use rekindle_domain::id::SessionId;
use rekindle_store::blobs::{BlobError, Blobs, Pins};
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_store::layout::Layout;
use rekindle_workspace::manifest::MANIFEST_VERSION;
use rekindle_workspace::restore::RestoreError;
use rekindle_workspace::tree::{Limits, NotResolved, Snap, SnapError, TreeWalk, WalkError};
use rekindle_workspace::{
    CaptureError, CaptureOptions, Captured, Comparison, Manifest, ObjectSource, Skipped, StatCache, capture,
    compare,
};

use self::capture_record::CaptureRecord;
use self::checkpoint_record::from_record;
pub use self::git::GitError;
use self::objects::BatchSink;
pub(crate) use self::objects::BlobSource;
use crate::lock::locked;

/// Held by whoever writes the files of a tree that is kept by name: two directories may have the same contents, and two captures of them
/// would write the same file.
static KEEPING: Mutex<()> = Mutex::new(());

/// Largest manifest that is read: it has four fields.
const MAX_MANIFEST: u64 = 1 << 20;

/// Largest record of a capture that is read: it has some hundred paths.
const MAX_RECORD: u64 = 16 << 20;

/// Why something cannot be done with a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A text that names no snapshot.
    #[error(transparent)]
    BadName(#[from] SnapError),
    /// A name that stands for none, or for several.
    #[error(transparent)]
    NotResolved(#[from] NotResolved),
    /// The directory could not be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The blob store could not keep or give an object.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// A tree cannot be read.
    #[error(transparent)]
    Tree(#[from] WalkError),
    /// A restore was refused, or did not come to its end.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Git did not do what was asked of it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Another restore is at work in the directory.
    #[error("another process is restoring {}", root.display())]
    Restoring {
        /// The directory.
        root: PathBuf,
    },
    /// A newer version wrote a manifest; it is left alone.
    #[error(
        "{path} has version {found}, newer than version {MANIFEST_VERSION} which this Rekindle knows; use a newer Rekindle for it"
    )]
    NewerManifest {
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file of the home cannot be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl WorkspaceError {
    /// Returns the code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            WorkspaceError::BadName(_) => "snap_invalid",
            WorkspaceError::NotResolved(error) => error.code(),
            WorkspaceError::Capture(_) => "capture_failed",
            WorkspaceError::Blobs(_) | WorkspaceError::Io { .. } => "home_unusable",
            WorkspaceError::Tree(_) => "tree_damaged",
            WorkspaceError::Restore(RestoreError::NameCollision { .. }) => "name_collision",
            WorkspaceError::Restore(RestoreError::Unfinished { .. }) => "restore_unfinished",
            WorkspaceError::Restore(_) => "restore_failed",
            WorkspaceError::Git(_) => "git_failed",
            WorkspaceError::Restoring { .. } => "restore_running",
            WorkspaceError::NewerManifest { .. } => "manifest_version",
        }
    }
}

/// A snapshot that is kept by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTree {
    /// What is in it.
    pub manifest: Manifest,
    /// When it was last taken.
    pub taken: SystemTime,
}

/// Facts of the capture of a tree that a restore has to know.
#[derive(Debug, Clone, Default)]
pub struct CaptureFacts {
    skipped: Skipped,
    git_head: Option<String>,
}

impl From<&RunCheckpoint> for CaptureFacts {
    fn from(checkpoint: &RunCheckpoint) -> CaptureFacts {
        let git = checkpoint.git.as_deref();
        CaptureFacts {
            skipped: checkpoint.skipped.as_deref().map(from_record).unwrap_or_default(),
            git_head: git.and_then(|git| git.commit.clone().or_else(|| git.reference.clone())),
        }
    }
}

/// The workspaces of a home.
pub struct Workspaces {
    disk: SharedDisk,
    layout: Layout,
    blobs: Blobs,
    source: BlobSource,
}

impl Workspaces {
    /// Returns the workspaces of a home.
    pub fn new(disk: SharedDisk, layout: Layout) -> Workspaces {
        let blobs = Blobs::reading(disk.clone(), layout.clone());
        let source = BlobSource(blobs.clone());
        Workspaces { disk, layout, blobs, source }
    }

    /// Returns the workspaces of a home whose owner has its blobs open: one table of packs, and of who relies on which.
    pub(crate) fn of_owner(disk: SharedDisk, layout: Layout, blobs: Blobs) -> Workspaces {
        let source = BlobSource(blobs.clone());
        Workspaces { disk, layout, blobs, source }
    }

    /// Returns the directory that a session's worktree is merged or compared in.
    pub(crate) fn worktree_scratch(&self, session: SessionId) -> PathBuf {
        self.layout.worktree_scratch(session)
    }

    /// Returns the file for what a session's worktree has that is nowhere else.
    pub(crate) fn worktree_bundle(&self, session: SessionId) -> PathBuf {
        self.layout.worktree_bundle(session)
    }

    /// Returns where contents and tree objects are read from.
    pub fn source(&self) -> &dyn ObjectSource {
        &self.source
    }

    /// Captures a directory and keeps it by name: on disk, with everything in it, when this returns.
    pub fn snapshot(&self, options: CaptureOptions<'_>) -> Result<Captured, WorkspaceError> {
        let keep = |captured: &Captured, root: &Path| self.keep(captured.tree, captured, root, false);
        self.capture(options, keep).map(|(captured, ())| captured)
    }

    /// The same for a run of a pipeline, with which it goes: unless somebody else keeps the tree.
    pub(crate) fn snapshot_for_run(&self, options: CaptureOptions<'_>) -> Result<Captured, WorkspaceError> {
        let keep = |captured: &Captured, root: &Path| {
            let tree = captured.tree;
            let for_runs = !self.is_kept(&tree) || self.is_kept_for_runs(tree);
            self.keep(tree, captured, root, for_runs)
        };
        self.capture(options, keep).map(|(captured, ())| captured)
    }

    fn is_kept_for_runs(&self, tree: BlobId) -> bool {
        self.capture_record(tree).is_some_and(|record| record.for_runs)
    }

    /// Returns the trees that are kept for runs of pipelines alone, and were last taken longer ago than this.
    pub(crate) fn kept_for_runs(
        &self,
        least: Duration,
        now: SystemTime,
    ) -> Result<Vec<BlobId>, WorkspaceError> {
        let directory = self.layout.workspaces();
        let entries = if_exists(self.disk.list(&directory)).map_err(unusable(&directory))?;
        let trees = entries.unwrap_or_default();
        let trees = trees.iter().filter_map(|entry| Layout::manifest_tree(&entry.name));
        let mut kept = Vec::new();
        for tree in trees.filter(|tree| self.is_kept_for_runs(*tree)) {
            let path = self.layout.manifest(&tree);
            let stat = if_exists(self.disk.stat(&path)).map_err(unusable(&path))?;
            if stat.is_some_and(|stat| now.duration_since(stat.modified).is_ok_and(|age| age > least)) {
                kept.push(tree);
            }
        }
        Ok(kept)
    }

    /// Keeps a tree by name no more. Its objects go with the next collection, unless somebody else names them.
    pub(crate) fn let_go(&self, tree: BlobId) -> Result<(), WorkspaceError> {
        let _keeping = locked(&KEEPING);
        self.remove_names(tree)?;
        let directory = self.layout.workspaces();
        self.disk.sync_dir(&directory).map_err(unusable(&directory))
    }

    /// The manifest last: it is what the next call finds it by, and the facts of a capture alone would keep the tree for ever.
    fn remove_names(&self, tree: BlobId) -> Result<(), WorkspaceError> {
        for path in [self.layout.capture_record(&tree), self.layout.manifest(&tree)] {
            if_exists(self.disk.remove_file(&path)).map_err(unusable(&path))?;
        }
        Ok(())
    }

    /// Captures a directory to compare it with something: nobody keeps it, and its objects are collected in a day.
    pub fn capture_for_now(&self, options: CaptureOptions<'_>) -> Result<Captured, WorkspaceError> {
        self.capture(options, |_, _| Ok(())).map(|(captured, ())| captured)
    }

    /// Keeps a tree by name that came here from elsewhere.
    pub(crate) fn keep_tree(&self, tree: BlobId) -> Result<(), WorkspaceError> {
        let manifest = Manifest::rebuild(&self.source, tree, Limits::default())?;
        let path = self.layout.manifest(&tree);
        let _keeping = locked(&KEEPING);
        let write = || {
            self.make_directory(&self.layout.workspaces())?;
            replace(&*self.disk, &path, &serde_json::to_vec(&manifest)?)
        };
        write().map_err(unusable(&path))
    }

    /// Keeps a tree by name, with the facts of a capture.
    fn keep(
        &self,
        tree: BlobId,
        captured: &Captured,
        root: &Path,
        for_runs: bool,
    ) -> Result<(), WorkspaceError> {
        let manifest = if tree == captured.tree {
            Manifest::new(tree, captured.totals.files, captured.totals.bytes)
        } else {
            Manifest::rebuild(&self.source, tree, Limits::default())?
        };
        let mut record = CaptureRecord::new(tree, root.as_os_str().as_encoded_bytes(), captured);
        record.for_runs = for_runs;
        let path = self.layout.capture_record(&tree);
        let _keeping = locked(&KEEPING);
        let write = || {
            self.make_directory(&self.layout.workspaces())?;
            replace(&*self.disk, &path, &serde_json::to_vec(&record)?)?;
            replace(&*self.disk, &self.layout.manifest(&tree), &serde_json::to_vec(&manifest)?)
        };
        write().map_err(unusable(&path))
    }

    /// Returns the facts of the latest capture of a tree that is kept by name; without them nothing is known to have been skipped.
    fn capture_record(&self, tree: BlobId) -> Option<CaptureRecord> {
        let bytes = read_all(&*self.disk, &self.layout.capture_record(&tree), MAX_RECORD).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Captures a directory; while `named` is called, nothing that was captured is collected.
    fn capture<T>(
        &self,
        options: CaptureOptions<'_>,
        named: impl FnOnce(&Captured, &Path) -> Result<T, WorkspaceError>,
    ) -> Result<(Captured, T), WorkspaceError> {
        let root = canonical(&options.root);
        let (captured, pins) = self.capture_pinned(options)?;
        let done = named(&captured, &root)?;
        drop(pins);
        Ok((captured, done))
    }

    /// Captures a directory: nothing that was captured is collected before the pins are dropped. One that is stopped keeps what
    /// it has done, so that the next one goes on from there.
    pub(crate) fn capture_pinned(
        &self,
        options: CaptureOptions<'_>,
    ) -> Result<(Captured, Pins), WorkspaceError> {
        let options = CaptureOptions { home: Some(self.layout.home().to_owned()), ..options };
        let stat_cache = self.layout.stat_cache(&canonical(&options.root));
        let batch = self.blobs.batch()?;
        let captured = match capture(&options, &BatchSink(&batch), &StatCache::load(&stat_cache)) {
            Err(CaptureError::Stopped { cache: Some(cache) }) => {
                if batch.commit().is_ok() {
                    self.save_stat_cache(&cache, &stat_cache);
                }
                return Err(CaptureError::Stopped { cache: None }.into());
            }
            captured => captured?,
        };
        let pins = batch.commit()?;
        if let Some(cache) = &captured.cache {
            self.save_stat_cache(cache, &stat_cache);
        }
        Ok((captured, pins))
    }

    /// Saves what the next capture need not read again; without it that one takes longer.
    fn save_stat_cache(&self, cache: &StatCache, path: &Path) {
        let saved = self.make_directory(&self.layout.stat_caches()).and_then(|()| cache.save(path));
        let _ = saved.inspect_err(|error| tracing::warn!("the stat cache cannot be written: {error}"));
    }

    /// Keeps some bytes beside a capture: nobody collects them before the pins are dropped.
    pub(crate) fn put_pinned(&self, bytes: &[u8]) -> Result<(BlobId, Pins), WorkspaceError> {
        let batch = self.blobs.batch()?;
        let id = batch.put(bytes)?;
        Ok((id, batch.commit()?))
    }

    /// Lists the snapshots that are kept by name, the latest first. One whose manifest is damaged is read from its tree.
    pub fn list(&self) -> Result<Vec<KeptTree>, WorkspaceError> {
        let directory = self.layout.workspaces();
        let entries = if_exists(self.disk.list(&directory)).map_err(unusable(&directory))?;
        let mut kept = Vec::new();
        for tree in entries.unwrap_or_default().iter().filter_map(|entry| Layout::manifest_tree(&entry.name))
        {
            let path = self.layout.manifest(&tree);
            let stat = if_exists(self.disk.stat(&path)).map_err(unusable(&path))?;
            if let Some(stat) = stat {
                kept.push(KeptTree { manifest: self.manifest(tree)?, taken: stat.modified });
            }
        }
        kept.sort_by_key(|kept| (std::cmp::Reverse(kept.taken), kept.manifest.tree));
        Ok(kept)
    }

    /// Lets go of the snapshots that were last taken longer ago than this, and returns them. Their objects go with the next collection,
    /// unless somebody else names them.
    pub fn expire(
        &self,
        most: Duration,
        now: SystemTime,
        dry_run: bool,
    ) -> Result<Vec<KeptTree>, WorkspaceError> {
        let is_old = |kept: &KeptTree| now.duration_since(kept.taken).is_ok_and(|age| age > most);
        let expired: Vec<KeptTree> = self.list()?.into_iter().filter(is_old).collect();
        if expired.is_empty() || dry_run {
            return Ok(expired);
        }
        for kept in &expired {
            self.remove_names(kept.manifest.tree)?;
        }
        let directory = self.layout.workspaces();
        self.disk.sync_dir(&directory).map_err(unusable(&directory))?;
        Ok(expired)
    }

    /// Tells whether a tree is kept by name.
    pub fn is_kept(&self, tree: &BlobId) -> bool {
        self.disk.stat(&self.layout.manifest(tree)).is_ok()
    }

    /// Tells whether a tree is there. What it names is, as long as it is itself.
    pub fn has(&self, tree: &BlobId) -> bool {
        self.blobs.contains(tree).unwrap_or(false)
    }

    /// Returns the tree that somebody named: one that is kept by name, or any whose whole hash is given.
    pub fn resolve(&self, name: &str) -> Result<BlobId, WorkspaceError> {
        self.resolve_among(name, [])
    }

    /// The same, also among trees that others know of: the checkpoints of a session.
    pub fn resolve_among(
        &self,
        name: &str,
        others: impl IntoIterator<Item = BlobId>,
    ) -> Result<BlobId, WorkspaceError> {
        let snap: Snap = name.parse()?;
        if let Some(tree) = snap.whole().filter(|tree| self.has(tree)) {
            return Ok(tree);
        }
        let directory = self.layout.workspaces();
        let entries =
            if_exists(self.disk.list(&directory)).map_err(unusable(&directory))?.unwrap_or_default();
        let kept = entries.iter().filter_map(|entry| Layout::manifest_tree(&entry.name));
        Ok(snap.resolve(kept.chain(others))?)
    }

    /// Returns the facts about a tree; one without a manifest, or with a damaged one, is read for it.
    pub fn manifest(&self, tree: BlobId) -> Result<Manifest, WorkspaceError> {
        let path = self.layout.manifest(&tree);
        let bytes = if_exists(read_all(&*self.disk, &path, MAX_MANIFEST)).map_err(unusable(&path))?;
        match bytes.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok()) {
            Some(manifest) if manifest.version > MANIFEST_VERSION => {
                Err(WorkspaceError::NewerManifest { path, found: manifest.version })
            }
            Some(manifest) if manifest.tree == tree => Ok(manifest),
            _ => Ok(Manifest::rebuild(&self.source, tree, Limits::default())?),
        }
    }

    /// Walks through a tree.
    pub fn walk(&self, tree: BlobId) -> TreeWalk<'_> {
        TreeWalk::new(&self.source, tree, Limits::default())
    }

    /// Compares two trees.
    pub fn compare(&self, old: BlobId, new: BlobId) -> Comparison<'_> {
        compare(&self.source, Some(old), Some(new), Limits::default())
    }

    /// Makes a directory of the home, and those above it.
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        if self.disk.stat(directory).is_ok() {
            return Ok(());
        }
        let above = directory.parent().filter(|above| above.starts_with(self.layout.home()));
        if let Some(above) = above.filter(|above| *above != self.layout.home()) {
            self.make_directory(above)?;
        }
        self.disk.create_dir(directory)?;
        above.map_or(Ok(()), |above| self.disk.sync_dir(above))
    }
}

/// Returns a directory by the name that it is known by whatever way led to it.
fn canonical(root: &Path) -> PathBuf {
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { path, source }
}
