//! Files of sessions, made what a tree says: the port through which workers restore them, and the workspaces of a home behind it.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_store::disk::is_shortage;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::rules::Selection;

use crate::error::{Result, chain};
use crate::workspaces::{CaptureFacts, WorkspaceError, Workspaces};

/// Whoever makes a directory what a tree says.
pub(crate) trait RestoreFiles: Send + Sync {
    /// Does it; doing it again finishes what was cut short, and changes nothing once it is finished. What the capture of the tree
    /// left out is left alone.
    fn restore_files(
        &self,
        tree: BlobId,
        facts: &CaptureFacts,
        root: &Path,
    ) -> Result<FilesRestored, FilesError>;
}

/// What a restore did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilesRestored {
    /// The way back.
    pub(crate) undo: BlobId,
    /// Paths that were changed.
    pub(crate) changed: u64,
    /// Paths that were left alone.
    pub(crate) left: u64,
}

/// Why files were not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilesError {
    /// Something ran out that comes back.
    Shortage(String),
    /// Another try would come to the same.
    Failed(String),
}

/// The workspaces of a home, and which files count there as the user configured it.
pub(crate) struct WorkspaceFiles {
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) selection: Selection,
}

impl RestoreFiles for WorkspaceFiles {
    fn restore_files(
        &self,
        tree: BlobId,
        facts: &CaptureFacts,
        root: &Path,
    ) -> Result<FilesRestored, FilesError> {
        let options = CaptureOptions { selection: self.selection.clone(), ..CaptureOptions::new(root) };
        let restored = self.workspaces.restore_with(tree, facts, options);
        let restored = restored.map_err(|error| match is_short(&error) {
            true => FilesError::Shortage(chain(&error)),
            false => FilesError::Failed(chain(&error)),
        })?;
        let (changed, left) = (restored.done.len() as u64, restored.left.len() as u64);
        Ok(FilesRestored { undo: restored.undo, changed, left })
    }
}

/// Tells whether something ran out that comes back.
fn is_short(error: &WorkspaceError) -> bool {
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
        let files = WorkspaceFiles { workspaces: workspaces.clone(), selection: selection.clone() };
        let restore = |tree, root: &Path| files.restore_files(tree, &CaptureFacts::default(), root);
        let [file, data] = ["file", "data/rows"].map(|name| work.path().join(name));
        std::fs::create_dir(work.path().join("data")).expect("made");
        std::fs::write(&file, "before").expect("written");
        let options = CaptureOptions { selection, ..CaptureOptions::new(work.path()) };
        let tree = workspaces.snapshot(options).expect("captured").tree;
        std::fs::write(&file, "after").expect("written");
        std::fs::write(&data, "rows").expect("written");
        let restored = restore(tree, work.path()).expect("restored");
        assert_eq!((restored.changed, restored.left), (1, 0));
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "before");
        assert!(data.exists(), "what the configuration excludes is left alone");
        // Once more changes nothing, and the way back leads back.
        assert_eq!(restore(tree, work.path()).expect("restored").changed, 0);
        restore(restored.undo, work.path()).expect("restored");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "after");
        // A tree that is not there, and a directory that is not, are final.
        for (tree, root) in [(BlobId::of(b"nothing"), work.path()), (tree, Path::new("/nowhere/at/all"))] {
            assert!(matches!(restore(tree, root), Err(FilesError::Failed(_))), "{root:?}");
        }
    }
}
