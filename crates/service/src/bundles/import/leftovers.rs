//! What imports have left that were cut short: staging directories, and files of sessions that got their place before their log did.
//! They are removed, never rolled forward.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_store::disk::{Disk, SharedDisk};
use rekindle_store::layout::Layout;
use rekindle_store::staging;

use super::super::BundleError;
use super::Plan;

/// Removes what imports have left that were cut short; the caller has their lock.
pub(super) fn remove_leftovers(disk: &dyn Disk, layout: &Layout) -> Result<(), BundleError> {
    let unusable = |source| BundleError::Io { path: layout.imports(), source };
    for left in staging::leftovers(disk, layout).map_err(unusable)? {
        remove_staged(disk, layout, &left).map_err(unusable)?;
    }
    Ok(())
}

/// Removes what imports have left that were cut short, unless one goes on; returns what was removed, or would be, and the room that
/// it took.
pub(crate) fn collect_leftovers(
    disk: &SharedDisk,
    layout: &Layout,
    dry_run: bool,
) -> Result<Vec<(PathBuf, u64)>, BundleError> {
    let unusable = |source| BundleError::Io { path: layout.imports(), source };
    let left = staging::leftovers(&**disk, layout).map_err(unusable)?;
    if left.is_empty() || staging::is_importing(&**disk, layout) {
        return Ok(Vec::new());
    }
    let sized = left.into_iter().map(|path| (staging::size(&**disk, &path).unwrap_or(0), path));
    let left = sized.map(|(bytes, path)| (path, bytes)).collect();
    if !dry_run {
        let Some(_lock) = staging::lock_imports(&**disk, layout)? else { return Ok(Vec::new()) };
        remove_leftovers(&**disk, layout)?;
    }
    Ok(left)
}

/// Removes a staging directory, and before that whatever was moved out of it of sessions that are not here. Only of one with a plan
/// anything was.
pub(super) fn remove_staged(disk: &dyn Disk, layout: &Layout, staging: &Path) -> io::Result<()> {
    if let Some(plan) = Plan::read(disk, staging)? {
        staging::take_back(disk, layout, staging, &plan.sessions)?;
    }
    staging::remove(disk, staging)
}
