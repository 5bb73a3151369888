//! Workspaces of a home: directories are captured into the blob store, kept by a manifest each, listed and compared. Works beside a
//! daemon and without one: whoever collects objects is kept out by the lock of the batch until the manifest is on disk.

mod objects;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rekindle_domain::blob_id::BlobId;
use rekindle_store::blobs::{BlobError, Blobs};
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_store::layout::Layout;
use rekindle_workspace::manifest::MANIFEST_VERSION;
use rekindle_workspace::tree::{Limits, NotResolved, Snap, SnapError, TreeWalk, WalkError};
use rekindle_workspace::{
    CaptureError, CaptureOptions, Captured, Comparison, Manifest, ObjectSource, StatCache, capture, compare,
};

use self::objects::BatchSink;
pub(crate) use self::objects::BlobSource;

/// Largest manifest that is read: it has four fields.
const MAX_MANIFEST: u64 = 1 << 20;

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

    /// Returns where contents and tree objects are read from.
    pub fn source(&self) -> &dyn ObjectSource {
        &self.source
    }

    /// Captures a directory and keeps it by name: on disk, with everything in it, when this returns.
    pub fn snapshot(&self, options: CaptureOptions<'_>) -> Result<Captured, WorkspaceError> {
        self.capture(options, |captured| {
            let manifest = Manifest::new(captured.tree, captured.totals.files, captured.totals.bytes);
            self.write_manifest(&manifest)
        })
    }

    /// Captures a directory to compare it with something: nobody keeps it, and its objects are collected in a day.
    pub fn capture_for_now(&self, options: CaptureOptions<'_>) -> Result<Captured, WorkspaceError> {
        self.capture(options, |_| Ok(()))
    }

    /// Captures a directory; while `named` is called, nothing that was captured is collected.
    fn capture(
        &self,
        options: CaptureOptions<'_>,
        named: impl FnOnce(&Captured) -> Result<(), WorkspaceError>,
    ) -> Result<Captured, WorkspaceError> {
        let options = CaptureOptions { home: Some(self.layout.home().to_owned()), ..options };
        let root = options.root.canonicalize().unwrap_or_else(|_| options.root.clone());
        let stat_cache = self.layout.stat_cache(&root);
        let batch = self.blobs.batch()?;
        let captured = capture(&options, &BatchSink(&batch), &StatCache::load(&stat_cache))?;
        let pins = batch.commit()?;
        named(&captured)?;
        drop(pins);
        if let Some(cache) = &captured.cache {
            // Without it the next capture takes longer.
            let saved =
                self.make_directory(&self.layout.stat_caches()).and_then(|()| cache.save(&stat_cache));
            let _ = saved.inspect_err(|error| tracing::warn!("the stat cache cannot be written: {error}"));
        }
        Ok(captured)
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

    /// Returns the tree that somebody named: one that is kept by name, or any whose whole hash is given.
    pub fn resolve(&self, name: &str) -> Result<BlobId, WorkspaceError> {
        let snap: Snap = name.parse()?;
        if let Some(tree) = snap.whole().filter(|tree| self.blobs.contains(tree).unwrap_or(false)) {
            return Ok(tree);
        }
        let directory = self.layout.workspaces();
        let entries =
            if_exists(self.disk.list(&directory)).map_err(unusable(&directory))?.unwrap_or_default();
        Ok(snap.resolve(entries.iter().filter_map(|entry| Layout::manifest_tree(&entry.name)))?)
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

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), WorkspaceError> {
        let path = self.layout.manifest(&manifest.tree);
        let write = || {
            self.make_directory(&self.layout.workspaces())?;
            replace(&*self.disk, &path, &serde_json::to_vec(manifest)?)
        };
        write().map_err(unusable(&path))
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

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { path, source }
}
