//! Files of sessions, made what a tree says: the port through which workers restore them, and the workspaces of a home behind it.

use std::collections::HashSet;
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{ChangedFile, GitWorktree, SessionWorktree};
use rekindle_store::disk::is_shortage;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::compare::Changed;
use rekindle_workspace::restore::Restored;
use rekindle_workspace::rules::Selection;

use super::capped_list::CappedList;
use crate::error::{Result, chain};
use crate::lock::locked;
use crate::workspaces::checkpoint_record::file_change;
use crate::workspaces::session_worktree::add::Added;
use crate::workspaces::session_worktree::prepare::{Preparation, Surroundings};
use crate::workspaces::{CaptureFacts, GitError, WorkspaceError, Workspaces};

/// Whoever makes a directory what a tree says.
pub(crate) trait RestoreFiles: Send + Sync {
    /// Makes a worktree of git with a directory in it, for an agent with this umask; one that is there is left as it is.
    fn add_worktree(&self, worktree: &GitWorktree, root: &Path, umask: u32) -> Result<(), FilesError>;

    /// Makes the worktree of a session's own with a directory in it, prepared for its agent; one that is there, and whole, is left as
    /// it is.
    fn add_session_worktree(
        &self,
        wanted: &SessionWorktree,
        root: &Path,
        around: &Surroundings<'_>,
    ) -> Result<Added, FilesError>;

    /// Does it; doing it again finishes what was cut short, and changes nothing once it is finished. What the capture of the tree
    /// left out is left alone. Who asks again for the same purpose is told the same, until it is recorded.
    fn restore_files(
        &self,
        purpose: &str,
        tree: BlobId,
        facts: &CaptureFacts,
        root: &Path,
    ) -> Result<FilesRestored, FilesError>;

    /// Notes that what came of the latest restore of a directory is recorded.
    fn note_recorded(&self, root: &Path);
}

/// What a restore did, over all attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilesRestored {
    /// The way back.
    pub(crate) undo: BlobId,
    /// Files that were changed.
    pub(crate) changed: u64,
    /// The first of them.
    pub(crate) files: Vec<ChangedFile>,
    /// Paths that were left alone.
    pub(crate) left: u64,
}

/// Why files were not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilesError {
    /// Something ran out that comes back, or somebody else restores the directory just now.
    NotYet(String),
    /// Another try would come to the same.
    Failed(String),
}

impl From<WorkspaceError> for FilesError {
    fn from(error: WorkspaceError) -> FilesError {
        match passes(&error) {
            true => FilesError::NotYet(chain(&error)),
            false => FilesError::Failed(chain(&error)),
        }
    }
}

/// The workspaces of a home, and which files count there as the user configured it.
pub(crate) struct WorkspaceFiles {
    workspaces: Arc<Workspaces>,
    selection: Selection,
    preparation: Preparation,
    /// Held by whoever restores: two sessions may have the same directory, or one below the other.
    one_at_a_time: Mutex<()>,
}

impl WorkspaceFiles {
    /// Returns the files of a home's sessions.
    pub(crate) fn new(
        workspaces: Arc<Workspaces>,
        selection: Selection,
        preparation: Preparation,
    ) -> WorkspaceFiles {
        WorkspaceFiles { workspaces, selection, preparation, one_at_a_time: Mutex::default() }
    }

    /// Returns what a restore has changed: what is not the same in the tree of before and in the wanted one, but for what was left
    /// alone. The report of the last attempt has nothing of those before it.
    fn changes(&self, restored: &Restored, root: &Path) -> Result<(u64, Vec<ChangedFile>), WorkspaceError> {
        let left: HashSet<&[u8]> = restored.left.iter().map(|left| left.path.as_slice()).collect();
        let is_left = |changed: &Changed| {
            let path = changed.path.as_slice();
            let mut above =
                path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
            if left.is_empty() || left.contains(path) {
                return !left.is_empty();
            }
            // A directory that stays for what is ignored in it may have lost the rest.
            above.any(|above| left.contains(above))
                && (changed.new.is_some() || root.join(OsStr::from_bytes(path)).symlink_metadata().is_ok())
        };
        let (mut total, mut told) = (0, CappedList::default());
        for changed in self.workspaces.compare(restored.undo, restored.tree) {
            let changed = changed?;
            if changed.is_directory() || is_left(&changed) {
                continue;
            }
            total += 1;
            let (path, change) = (changed.path.as_slice().into(), file_change(changed.change));
            told.push(changed.path.len(), ChangedFile { path, change });
        }
        Ok((total, told.first))
    }
}

impl RestoreFiles for WorkspaceFiles {
    fn add_worktree(&self, worktree: &GitWorktree, root: &Path, umask: u32) -> Result<(), FilesError> {
        Ok(self.workspaces.add_worktree(worktree, root, umask)?)
    }

    fn add_session_worktree(
        &self,
        wanted: &SessionWorktree,
        root: &Path,
        around: &Surroundings<'_>,
    ) -> Result<Added, FilesError> {
        Ok(self.workspaces.add_session_worktree(wanted, root, &self.preparation, around)?)
    }

    fn note_recorded(&self, root: &Path) {
        self.workspaces.forget_receipt(root);
    }

    fn restore_files(
        &self,
        purpose: &str,
        tree: BlobId,
        facts: &CaptureFacts,
        root: &Path,
    ) -> Result<FilesRestored, FilesError> {
        let _one_at_a_time = locked(&self.one_at_a_time);
        let options = CaptureOptions { selection: self.selection.clone(), ..CaptureOptions::new(root) };
        let restored = self.workspaces.restore_for(purpose, tree, facts, options);
        let restored = restored?;
        let changes = self.changes(&restored, root);
        let (changed, files) = changes.unwrap_or_else(|error| {
            tracing::warn!("it cannot be shown what a restore changed: {}", chain(&error));
            (restored.done.len() as u64, Vec::new())
        });
        Ok(FilesRestored { undo: restored.undo, changed, files, left: restored.left.len() as u64 })
    }
}

/// Tells whether a later try may come to something else: something ran out that comes back, or somebody else is at it.
fn passes(error: &WorkspaceError) -> bool {
    if matches!(error, WorkspaceError::Restoring { .. } | WorkspaceError::Git(GitError::Stopped)) {
        return true;
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_shortage) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use rekindle_domain::event::FileChange;
    use rekindle_store::disk::RealDisk;
    use rekindle_store::layout::Layout;

    use super::*;

    #[test]
    fn a_directory_is_made_what_it_was_and_the_way_back_is_told() {
        let (home, work) = (tempfile::tempdir().expect("a home"), tempfile::tempdir().expect("a directory"));
        let layout = Layout::new(home.path());
        rekindle_store::home::prepare(&RealDisk, &layout).expect("a home");
        let workspaces = Arc::new(Workspaces::new(Arc::new(RealDisk), layout));
        let selection = Selection { exclude: vec!["data/".into()], include: Vec::new() };
        let files = WorkspaceFiles::new(workspaces.clone(), selection.clone(), Preparation::default());
        let restore_for =
            |purpose, tree, root: &Path| files.restore_files(purpose, tree, &CaptureFacts::default(), root);
        let restore = |tree, root: &Path| restore_for("once more", tree, root);
        let canonical = work.path().canonicalize().expect("a path");
        let [file, data] = ["file", "data/rows"].map(|name| work.path().join(name));
        std::fs::create_dir(work.path().join("data")).expect("made");
        std::fs::write(&file, "before").expect("written");
        let options = CaptureOptions { selection, ..CaptureOptions::new(work.path()) };
        let tree = workspaces.snapshot(options).expect("captured").tree;
        std::fs::write(&file, "after").expect("written");
        std::fs::write(&data, "rows").expect("written");
        let restored = restore_for("first", tree, work.path()).expect("restored");
        // Whoever died before he had recorded it is told the same; whoever asks for another reason is not.
        assert_eq!(restore_for("first", tree, work.path()).as_ref(), Ok(&restored));
        assert_eq!((restored.changed, restored.left), (1, 0));
        let modified = ChangedFile { path: b"file".as_slice().into(), change: FileChange::Modified };
        assert_eq!(restored.files, [modified]);
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "before");
        assert!(data.exists(), "what the configuration excludes is left alone");
        // A directory stays for what is excluded in it; what else was in it is gone, and told.
        let app = work.path().join("app/data");
        std::fs::create_dir_all(&app).expect("made");
        std::fs::write(app.join("rows"), "rows").expect("written");
        std::fs::write(work.path().join("app/new"), "new").expect("written");
        let kept = restore_for("another", tree, work.path()).expect("restored");
        let deleted = ChangedFile { path: b"app/new".as_slice().into(), change: FileChange::Deleted };
        assert_eq!((kept.changed, kept.left, kept.files), (1, 1, vec![deleted]));
        assert!(app.join("rows").exists() && !work.path().join("app/new").exists());
        std::fs::remove_dir_all(work.path().join("app")).expect("removed");
        // Once more changes nothing, and the way back leads back.
        assert_eq!(restore(tree, work.path()).expect("restored").changed, 0);
        files.note_recorded(work.path());
        assert_eq!(restore_for("first", tree, work.path()).expect("restored").changed, 0, "it is recorded");
        restore(restored.undo, work.path()).expect("restored");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "after");
        // Somebody else is at it: later.
        let elsewhere = Workspaces::new(Arc::new(RealDisk), Layout::new(home.path()));
        let other = elsewhere.lock_restore(&canonical).expect("nobody has it");
        assert!(matches!(restore(tree, work.path()), Err(FilesError::NotYet(_))), "it is locked");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "after", "nothing is touched");
        drop(other);
        restore(tree, work.path()).expect("restored");
        // A tree that is not there, and a directory that is not, are final.
        for (tree, root) in [(BlobId::of(b"nothing"), work.path()), (tree, Path::new("/nowhere/at/all"))] {
            assert!(matches!(restore(tree, root), Err(FilesError::Failed(_))), "{root:?}");
        }
    }
}
