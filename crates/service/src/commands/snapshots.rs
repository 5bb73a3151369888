//! Kept snapshots listed, shown and taken on request.

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{SnapshotName, SnapshotReason};
use rekindle_wire::view::{SnapshotDetail, SnapshotList, SnapshotView};

use crate::error::Result;
use crate::snapshots::{Snapshots, snapshot_detail, snapshot_list, snapshot_view};

/// Lists a session's snapshots.
pub(crate) fn list(snapshots: &Snapshots, session: SessionId) -> Result<SnapshotList> {
    Ok(snapshot_list(&snapshots.kept(), session)?)
}

/// Shows a snapshot with everything it says.
pub(crate) fn show(snapshots: &Snapshots, session: SessionId, name: SnapshotName) -> Result<SnapshotDetail> {
    let (file, snapshot) = snapshots.kept().find(session, name)?;
    Ok(snapshot_detail(&file, &snapshot))
}

/// Takes a snapshot of a session as it is.
pub(crate) fn take(snapshots: &Snapshots, session: SessionId) -> Result<SnapshotView> {
    let (file, snapshot) = snapshots.take_now(session, SnapshotReason::Request)?;
    Ok(snapshot_view(&file, &Ok(snapshot)))
}
