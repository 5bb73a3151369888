//! The files of a fork: what the directory contained between two runs, told by the checkpoint that was taken there, and what becomes
//! of it.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Event, InputKind, Kind, RunCheckpoint};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::FilesOutcome;

use crate::error::{Result, ServiceError};
use crate::show::log::history;
use crate::storage::Sessions;

/// Finds what the directory of a session contained at a cut: the checkpoint at the end of the run before it, or else that at the
/// start of the run behind it. None if neither was taken before that run's prompt was given to an agent.
pub(in crate::commands) fn checkpoint_behind(
    store: &dyn Sessions,
    session: SessionId,
    cut: u64,
) -> Result<Option<RunCheckpoint>> {
    let history = history(store, session)?;
    let Some(place) = history.reader.find(cut).map_err(ServiceError::internal)? else { return Ok(None) };
    let mut lines = history.reader.forward(place);
    while let Some(raw) = lines.next().map_err(ServiceError::internal)? {
        let Ok(line) = Line::parse(raw.bytes) else { continue };
        let kind = Kind::from_name(line.kind).filter(|_| line.seq > cut);
        if !matches!(kind, Some(Kind::RunCheckpoint | Kind::InputQueued)) {
            continue;
        }
        match line.event() {
            Ok(Event::RunCheckpoint(checkpoint)) if checkpoint.tree.is_some() => return Ok(Some(checkpoint)),
            Ok(Event::InputQueued(input)) if input.what == InputKind::Prompt => break,
            _ => {}
        }
    }
    Ok(None)
}

/// Returns a tree that somebody wants restored, if it is there; `missing` says which checkpoint was not taken.
pub(in crate::commands) fn kept_tree(
    store: &dyn Sessions,
    tree: Option<BlobId>,
    missing: impl FnOnce() -> String,
) -> Result<BlobId> {
    let Some(tree) = tree else {
        return Err(ServiceError::new(Code::CheckpointMissing, missing()).hint(Hint::LeaveFiles));
    };
    if store.blobs().contains(&tree)? {
        return Ok(tree);
    }
    let message = format!("the files of checkpoint {tree} are no longer kept");
    Err(ServiceError::new(Code::SnapExpired, message).hint(Hint::LeaveFiles))
}

/// Tells what becomes of the files of a session that goes on from another: its first record says so.
pub(super) fn files_outcome(store: &dyn Sessions, session: SessionId) -> Result<FilesOutcome> {
    let reader = store.reader(session).map_err(ServiceError::internal)?;
    let mut lines = reader.forward(Cursor::START);
    let first = lines.next().map_err(ServiceError::internal)?;
    let line = first.as_ref().and_then(|raw| Line::parse(raw.bytes).ok());
    Ok(match line.as_ref().and_then(|line| line.event().ok()) {
        Some(Event::SessionCreated(created)) if created.restoring.is_some() => FilesOutcome::Restored,
        _ => FilesOutcome::Left,
    })
}
