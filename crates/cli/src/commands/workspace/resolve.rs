//! Which snapshot is meant: one that is kept by name, or a checkpoint that some session's log has.

use rekindle_client::failure::Failure;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::RunCheckpoint;
use rekindle_service::all_checkpoints;
use rekindle_service::workspaces::{CaptureFacts, Workspaces};

use super::{Context, failure};

/// A snapshot that somebody named.
pub(super) struct Named {
    pub(super) tree: BlobId,
    /// What is known of its capture, if a log has that.
    pub(super) facts: Option<CaptureFacts>,
}

/// Finds the snapshot that is meant.
pub(super) fn find(context: &Context, workspaces: &Workspaces, name: &str) -> Result<Named, Failure> {
    if let Ok(tree) = workspaces.resolve(name)
        && workspaces.is_kept(&tree)
    {
        return Ok(Named { tree, facts: None });
    }
    let checkpoints = checkpoints(context)?;
    let trees = checkpoints.iter().filter_map(|checkpoint| checkpoint.tree);
    let tree = workspaces.resolve_among(name, trees).map_err(failure)?;
    let latest = checkpoints.iter().rev().find(|checkpoint| checkpoint.tree == Some(tree));
    Ok(Named { tree, facts: latest.map(Into::into) })
}

/// Reads the checkpoints of all sessions. One whose log cannot be read has none.
fn checkpoints(context: &Context) -> Result<Vec<RunCheckpoint>, Failure> {
    let home = context.offline()?;
    let mut found = Vec::new();
    for session in home.sessions()? {
        let read = home.history(session).and_then(|history| all_checkpoints(&history.reader));
        found.append(&mut read.unwrap_or_default());
    }
    Ok(found)
}
