//! The capture that a rerun begins with, completed: what an interrupted restore knows of is looked at, hidden or not.

use rekindle_domain::blob_id::BlobId;

use super::journal::Journal;
use super::keep::{Captured, Keeper};
use super::plan::plan;
use super::report::RestoreError;
use super::root::{Root, SeenKind};
use super::side::{Side, SkippedPaths};
use super::undo::{Overlay, lay_over};
use crate::objects::{ObjectSink, ObjectSource};
use crate::tree::{Limits, WalkedEntry};

/// Returns the tree of a capture completed by what is on disk and in one of the trees of an interrupted restore.
///
/// Half-way, ignore files of before and of the wanted tree are mixed, and may hide what neither of the two would.
pub(super) fn complete(
    root: &dyn Root,
    sink: &dyn ObjectSink,
    source: &dyn ObjectSource,
    now: BlobId,
    (journal, limits): (&Journal, Limits),
) -> Result<BlobId, RestoreError> {
    let skipped = SkippedPaths::default();
    let side = |tree| Side { tree, ignores: &|_, _| false, skipped: &skipped, git_head: None };
    let mut found = Overlay::new();
    let keeper = Keeper { root, sink };
    for tree in journal.trees() {
        let missing = plan(source, &side(now), &side(tree), None, limits)?;
        for change in missing.changes.iter().filter(|change| change.before.is_none()) {
            for WalkedEntry { path, .. } in &change.creates {
                // What cannot be looked at is found again, and named, when it is in the way.
                match root.stat(path) {
                    Ok(Some(seen)) if seen.kind == SeenKind::Directory => {
                        found.insert(path.clone(), keeper.keep_empty_directory(path)?);
                    }
                    Ok(Some(_)) => {
                        if let Captured::As(node, _) = keeper.capture(path)? {
                            found.insert(path.clone(), node);
                        }
                    }
                    Ok(None) | Err(_) => {}
                }
            }
        }
    }
    lay_over(source, sink, now, &found)
}
