//! Restores of a home's workspaces: a directory becomes what a tree says, one restore at a time, and what was there is kept.

use std::io;
use std::path::Path;

use rekindle_domain::blob_id::BlobId;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::restore::{
    DirRoot, RestoreError, Restored, Side, SkippedPaths, Tools, TreeRules, restore,
};
use rekindle_workspace::tree::Limits;

use super::capture_record::git_head;
use super::crash_point_root::CrashPointRoot;
use super::restore_journal::{HomeJournal, unfinished};
use super::restore_objects::RestoreObjects;
use super::restore_receipt::ReceiptFile;
use super::{CaptureFacts, WorkspaceError, Workspaces, canonical, unusable};
use crate::lock_file::LockFile;

impl Workspaces {
    /// Makes a directory what a tree says. What was there is kept by name first: restoring that is the way back.
    pub fn restore(&self, wanted: BlobId, options: CaptureOptions<'_>) -> Result<Restored, WorkspaceError> {
        // Without the facts of its capture nothing is known to have been skipped.
        let facts = self
            .capture_record(wanted)
            .map(|record| CaptureFacts { skipped: record.skipped(), git_head: record.git_head });
        self.restore_with(wanted, &facts.unwrap_or_default(), options)
    }

    /// The same for a tree whose capture has its facts elsewhere: a checkpoint of a run has them in its record.
    pub fn restore_with(
        &self,
        wanted: BlobId,
        facts: &CaptureFacts,
        options: CaptureOptions<'_>,
    ) -> Result<Restored, WorkspaceError> {
        self.restore_and_keep(wanted, facts, options, None)
    }

    /// The same for somebody who may die before he has written down what came of it: asked again for the same purpose, it tells the
    /// way back of the first time. [`Workspaces::forget_receipt`] is for when it is written down.
    pub(crate) fn restore_for(
        &self,
        purpose: &str,
        wanted: BlobId,
        facts: &CaptureFacts,
        options: CaptureOptions<'_>,
    ) -> Result<Restored, WorkspaceError> {
        let receipt = self.receipt(&options.root);
        let restored = self.restore_and_keep(wanted, facts, options, Some(purpose))?;
        let undo = receipt.way_back(purpose, wanted).unwrap_or(restored.undo);
        Ok(Restored { undo, ..restored })
    }

    /// Forgets the latest restore of a directory: what came of it is written down elsewhere.
    pub(crate) fn forget_receipt(&self, root: &Path) {
        let removed = self.receipt(root).remove();
        let _ = removed.inspect_err(|error| tracing::debug!("the receipt of a restore stays: {error}"));
    }

    fn receipt(&self, root: &Path) -> ReceiptFile<'_> {
        ReceiptFile { disk: &self.disk, path: self.layout.restore_receipt(&canonical(root)) }
    }

    fn restore_and_keep(
        &self,
        wanted: BlobId,
        facts: &CaptureFacts,
        options: CaptureOptions<'_>,
        purpose: Option<&str>,
    ) -> Result<Restored, WorkspaceError> {
        let selection = options.selection.clone();
        // Before the directory is looked at: what another restore changes meanwhile would count as somebody's work.
        let _alone = self.lock_restore(&canonical(&options.root))?;
        let restored = self.capture(options, |captured, root| {
            let objects = RestoreObjects::new(self.blobs.clone());
            let journal = HomeJournal {
                disk: &self.disk,
                path: self.layout.restore_journal(root),
                objects: &objects,
                receipt: purpose.map(|purpose| (self.receipt(root), purpose)),
                keep: &|undo| self.keep(undo, captured, root, false).map_err(io::Error::other),
            };
            let unread = |source| RestoreError::Journal { doing: "read", source };
            let skipped_then = SkippedPaths::of(&facts.skipped, &objects).map_err(unread)?;
            let skipped_now = SkippedPaths::of(&captured.skipped, &objects).map_err(unread)?;
            let rules = TreeRules::new(&objects, wanted, &selection);
            let head_now = git_head(captured);
            let now = Side {
                tree: captured.tree,
                ignores: &|_, _| false,
                skipped: &skipped_now,
                git_head: head_now.as_deref(),
            };
            let then = Side {
                tree: wanted,
                ignores: &|path, is_dir| rules.ignores(path, is_dir),
                skipped: &skipped_then,
                git_head: facts.git_head.as_deref(),
            };
            let directory = CrashPointRoot(DirRoot::open(root).map_err(unusable(root))?);
            let (limits, source, sink) = (Limits::default(), &objects, &objects);
            let tools = Tools { root: &directory, source, sink, journal: &journal, limits };
            let restored = restore(&tools, &now, &then)?;
            if restored.done.is_empty() && !restored.resumed {
                // There was nothing to do, and so no journal that would have seen to it.
                self.keep(restored.undo, captured, root, false)?;
            }
            Ok(restored)
        });
        restored.map(|(_, restored)| restored)
    }

    /// Keeps every other restore of a directory out, of this process and of others, until the lock is dropped.
    pub(crate) fn lock_restore(&self, root: &Path) -> Result<LockFile, WorkspaceError> {
        let (directory, path) = (self.layout.restoring(), self.layout.restore_lock(root));
        self.make_directory(&directory).map_err(unusable(&directory))?;
        let taken = LockFile::take(&self.disk, &path).map_err(unusable(&path))?;
        taken.ok_or_else(|| WorkspaceError::Restoring { root: root.to_owned() })
    }

    /// Tells whether a restore of a directory has not come to its end.
    pub(crate) fn is_restoring(&self, root: &Path) -> bool {
        self.disk.stat(&self.layout.restore_journal(&canonical(root))).is_ok()
    }

    /// Returns the tree that a restore of a directory was to make it which has not come to its end.
    pub(crate) fn restoring_to(&self, root: &Path) -> Option<BlobId> {
        unfinished(&self.disk, &self.layout.restore_journal(&canonical(root))).map(|journal| journal.to)
    }
}
