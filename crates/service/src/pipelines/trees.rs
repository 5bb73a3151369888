//! Trees of directories as pipeline runs need them: the port through which their workers capture, compare and restore, and the
//! workspaces of a home behind it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{ChangedFile, ChangedFiles, FileChange, FilesTouched, TouchedFile};
use rekindle_domain::path_name::PathName;
use rekindle_domain::pipeline::artifact::ArtifactError;
use rekindle_domain::time::Timestamp;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::compare::{Changed, count_lines, write_unified};
use rekindle_workspace::rules::Selection;
use rekindle_workspace::tree::{Node, load};

use super::artifacts;
use crate::drive::workspace_files::FilesError;
use crate::error::chain;
use crate::workspaces::checkpoint_record::file_change;
use crate::workspaces::{WorkspaceError, Workspaces};

/// Files that a record names.
const NAMED: usize = 200;

/// How long the lines of a step's files are counted.
const COUNTED_WITHIN: Duration = Duration::from_secs(5);

/// The most bytes of a file that is put into a prompt, and of the changes of a step: the template cuts them shorter.
const MOST_TEXT: usize = 256 << 10;

/// Whoever captures, compares and restores the directories of runs.
pub(crate) trait Trees: Send + Sync {
    /// Captures a directory, and keeps its tree by name: on disk, with everything in it, when this returns.
    fn capture(&self, root: &Path) -> Result<BlobId, String>;

    /// Makes a directory what a tree says; doing it again finishes what was cut short.
    fn restore(&self, tree: BlobId, root: &Path) -> Result<(), FilesError>;

    /// Returns the tree that a restore of a directory was to make it which has not come to its end.
    fn restoring(&self, root: &Path) -> Option<BlobId>;

    /// Tells whether a tree is there.
    fn has(&self, tree: BlobId) -> bool;

    /// Returns the content of a file in a tree.
    fn file(&self, tree: BlobId, path: &str) -> Option<BlobId>;

    /// Returns a content as text, or the beginning of it.
    fn text(&self, content: BlobId) -> Option<String>;

    /// Returns the files that are not the same in two trees.
    fn changed(&self, from: BlobId, to: BlobId) -> Result<Vec<ChangedFile>, String>;

    /// Returns when a file was changed last, as nobody can set it; of one that is gone, its directory. None if that cannot be told.
    fn changed_at(&self, root: &Path, file: &ChangedFile) -> Option<Timestamp>;

    /// Returns the files that are not the same, with their lines counted.
    fn touched(&self, from: BlobId, to: BlobId) -> Option<FilesTouched>;

    /// Returns the SHA-256 of a file of a directory, as hex digits, reached without following a link.
    fn sha256(&self, root: &Path, path: &str) -> Result<String, ArtifactError>;

    /// Returns what is not the same, line by line.
    fn diff(&self, from: BlobId, to: BlobId) -> Option<String>;
}

/// Returns files as a record tells of them.
pub(super) fn as_recorded(changed: &[ChangedFile]) -> ChangedFiles {
    ChangedFiles {
        total: changed.len() as u64,
        rules_differ: false,
        first: changed.iter().take(NAMED).cloned().collect(),
    }
}

/// Returns a path as people read it.
pub(super) fn shown(path: &PathName) -> String {
    String::from_utf8_lossy(&path.bytes().unwrap_or_default()).into_owned()
}

/// The workspaces of a home.
pub(crate) struct WorkspaceTrees {
    workspaces: Arc<Workspaces>,
    selection: Selection,
}

impl WorkspaceTrees {
    /// Returns the trees of a home whose user configured which files count.
    pub(crate) fn new(workspaces: Arc<Workspaces>, selection: Selection) -> WorkspaceTrees {
        WorkspaceTrees { workspaces, selection }
    }

    fn options(&self, root: &Path) -> CaptureOptions<'static> {
        CaptureOptions { selection: self.selection.clone(), ..CaptureOptions::new(root) }
    }

    /// Returns the files that are not the same: directories follow from them.
    fn files(&self, from: BlobId, to: BlobId) -> impl Iterator<Item = Result<Changed, WorkspaceError>> {
        let compared = self.workspaces.compare(from, to).map(|changed| changed.map_err(Into::into));
        compared.filter(|changed| changed.as_ref().map_or(true, |changed| !changed.is_directory()))
    }
}

impl Trees for WorkspaceTrees {
    fn capture(&self, root: &Path) -> Result<BlobId, String> {
        let captured = self.workspaces.snapshot_for_run(self.options(root));
        captured.map(|captured| captured.tree).map_err(|error| chain(&error))
    }

    fn restore(&self, tree: BlobId, root: &Path) -> Result<(), FilesError> {
        self.workspaces.restore(tree, self.options(root)).map(drop).map_err(FilesError::from)
    }

    fn restoring(&self, root: &Path) -> Option<BlobId> {
        self.workspaces.restoring_to(root)
    }

    fn has(&self, tree: BlobId) -> bool {
        self.workspaces.has(&tree)
    }

    fn file(&self, tree: BlobId, path: &str) -> Option<BlobId> {
        let (mut at, mut names) = (tree, path.split('/').peekable());
        loop {
            let name = names.next()?;
            let tree = load(self.workspaces.source(), &at).ok()?;
            let entry = tree.entries().find(|entry| entry.name == name.as_bytes())?;
            match (entry.node, names.peek()) {
                (Node::File { content, .. }, None) => return Some(content),
                (Node::Directory { tree }, Some(_)) => at = tree,
                _ => return None,
            }
        }
    }

    fn text(&self, content: BlobId) -> Option<String> {
        let mut beginning = Beginning(Vec::new());
        let read = self.workspaces.source().read(&content, &mut beginning);
        let is_cut = beginning.0.len() >= MOST_TEXT;
        (read.is_ok() || is_cut).then(|| String::from_utf8_lossy(&beginning.0).into_owned())
    }

    fn changed(&self, from: BlobId, to: BlobId) -> Result<Vec<ChangedFile>, String> {
        self.files(from, to)
            .map(|changed| {
                let changed = changed.map_err(|error| chain(&error))?;
                Ok(ChangedFile { path: changed.path.as_slice().into(), change: file_change(changed.change) })
            })
            .collect()
    }

    fn changed_at(&self, root: &Path, file: &ChangedFile) -> Option<Timestamp> {
        let path = root.join(OsStr::from_bytes(&file.path.bytes()?));
        let mut place = path.as_path();
        if file.change == FileChange::Deleted {
            place = place.parent()?;
        }
        loop {
            match place.symlink_metadata() {
                Ok(there) => {
                    let millis =
                        there.ctime().saturating_mul(1000).saturating_add(there.ctime_nsec() / 1_000_000);
                    return Some(Timestamp::from_millis(millis));
                }
                // What was in a directory that is gone went with it: that is seen in the one above.
                Err(_) if file.change == FileChange::Deleted && place != root => place = place.parent()?,
                Err(_) => return None,
            }
        }
    }

    fn sha256(&self, root: &Path, path: &str) -> Result<String, ArtifactError> {
        artifacts::sha256_of(root, path)
    }

    fn touched(&self, from: BlobId, to: BlobId) -> Option<FilesTouched> {
        let begin = Instant::now();
        let mut touched = FilesTouched {
            total: 0,
            lines_added: 0,
            lines_removed: 0,
            uncounted: 0,
            rules_differ: false,
            first: Vec::new(),
            all: None,
        };
        for changed in self.files(from, to) {
            let changed = changed.ok()?;
            let counts = begin.elapsed() < COUNTED_WITHIN;
            let lines =
                if counts { count_lines(self.workspaces.source(), &changed).ok().flatten() } else { None };
            match lines {
                Some(lines) => {
                    touched.lines_added += lines.added;
                    touched.lines_removed += lines.removed;
                }
                None => touched.uncounted += 1,
            }
            touched.total += 1;
            if touched.first.len() < NAMED {
                touched.first.push(TouchedFile {
                    path: changed.path.as_slice().into(),
                    change: file_change(changed.change),
                    lines_added: lines.map(|lines| lines.added),
                    lines_removed: lines.map(|lines| lines.removed),
                });
            }
        }
        Some(touched)
    }

    fn diff(&self, from: BlobId, to: BlobId) -> Option<String> {
        let mut text = Vec::new();
        for changed in self.files(from, to) {
            write_unified(self.workspaces.source(), &changed.ok()?, &mut text).ok()?;
            if text.len() > MOST_TEXT {
                break;
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Takes in the beginning of a content, and wants no more.
struct Beginning(Vec<u8>);

impl std::io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = MOST_TEXT.saturating_sub(self.0.len());
        if room == 0 {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
