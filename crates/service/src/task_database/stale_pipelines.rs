//! Stale pipeline runs: those whose rows are behind their ledgers, by how long these are. No ledger is read for that.

use std::collections::HashMap;

use rekindle_domain::id::{PipelineId, StreamId};
use rekindle_taskdb::{DbError, PipelineProjection, TaskDb};

use super::Tools;

/// Returns the runs whose rows are behind their ledgers; what rows say of runs that are gone is forgotten.
pub(super) fn find_stale(tools: &Tools, db: &mut TaskDb) -> Result<Vec<StreamId>, DbError> {
    let home = &tools.owner.home_id;
    let there = match tools.store.pipelines() {
        Ok(there) => there.runs,
        Err(error) => {
            tracing::warn!("the task database may be behind: pipeline runs cannot be listed: {error}");
            return Ok(Vec::new());
        }
    };
    let bytes = |state: &str| serde_json::from_str::<PipelineProjection>(state).ok().map(|known| known.bytes);
    let known = db.pipeline_cursors(home)?.into_iter();
    let mut known: HashMap<String, Option<u64>> =
        known.map(|(stream, cursor)| (stream, cursor.state.as_deref().and_then(bytes))).collect();
    let mut stale = Vec::new();
    for name in there {
        let run = name.pipeline_id();
        let written = known.remove(run.as_str()).flatten();
        // Of a ledger that is not told how long it is there may be more.
        if written.is_none() || tools.store.ledger_size(run).ok().flatten() != written {
            stale.push(run.into());
        }
    }
    for run in known.keys().filter_map(|stream| stream.parse::<PipelineId>().ok()) {
        db.forget_pipeline(home, run)?;
    }
    Ok(stale)
}
