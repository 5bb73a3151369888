//! Kept snapshots as they are shown, by a daemon and without one.

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::KeptSnapshot;
use rekindle_store::kept_snapshots::{KeptSnapshots, SnapshotError, SnapshotFile};
use rekindle_wire::view::{SnapshotDetail, SnapshotList, SnapshotProblem, SnapshotView};
use serde_json::Value;

use super::timestamp;
use crate::drive::live::wanted;
use crate::error::{chain, snapshot_code};
use crate::show::run_view;

/// Lists a session's snapshots, the one that was taken last first; those that cannot be read are among them.
pub fn snapshot_list(kept: &KeptSnapshots, session: SessionId) -> Result<SnapshotList, SnapshotError> {
    let mut snapshots = Vec::new();
    for file in kept.list(session)?.into_iter().rev() {
        match kept.read(session, file.name) {
            // Removed since it was listed.
            Err(SnapshotError::NotFound { .. }) => {}
            read => snapshots.push(snapshot_view(&file, &read)),
        }
    }
    Ok(SnapshotList { snapshots })
}

/// Shows a snapshot in a list. One that cannot be read is in it, with the reason.
pub fn snapshot_view(file: &SnapshotFile, read: &Result<KeptSnapshot, SnapshotError>) -> SnapshotView {
    let mut view = SnapshotView {
        name: file.name.to_string(),
        seq: file.name.seq,
        reason: None,
        created_at: timestamp(file.modified),
        size_bytes: file.size,
        tree: None,
        problem: None,
    };
    match read {
        Ok(snapshot) => {
            view.reason = Some(snapshot.reason.into());
            (view.created_at, view.tree) = (snapshot.created_at, snapshot.tree);
        }
        Err(error) => {
            let code = snapshot_code(error).to_string();
            view.problem = Some(SnapshotProblem { code, message: chain(error) });
        }
    }
    view
}

/// Shows a snapshot with everything it says.
pub fn snapshot_detail(file: &SnapshotFile, snapshot: &KeptSnapshot) -> SnapshotDetail {
    let state = &snapshot.state;
    SnapshotDetail {
        name: file.name.to_string(),
        session_id: snapshot.session_id,
        seq: snapshot.seq,
        h: snapshot.h.map(|hash| hash.to_string()),
        reason: snapshot.reason.into(),
        created_at: snapshot.created_at,
        size_bytes: file.size,
        tree: snapshot.tree,
        title: state.title.clone(),
        working_dir: state.working_dir.clone(),
        agent: state.provider.name(),
        model: state.provider.model.clone(),
        mode: wanted(state).mode,
        cursor: state.agent.as_ref().and_then(|agent| agent.cursor.clone()),
        run: run_view(state, None),
        waits: state.run.as_ref().map_or(0, |run| run.waits.len()),
        queued: state.queue.len(),
        usage: state.usage.shown(),
        state: match serde_json::to_value(state) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        },
    }
}
