//! The ledger of a pipeline run read for notifications.

use std::io;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::PipelineId;
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::RunStatus;
use rekindle_notify::derive::{Derived, pipeline_notice};
use rekindle_store::Store;

/// What a ledger says.
pub(super) struct ReadPipeline {
    pub(super) derived: Vec<Derived>,
    /// The last record that was read, and its hash.
    pub(super) seq: u64,
    pub(super) h: Option<ChainHash>,
    /// The run has ended: nothing more comes unless somebody reopens it.
    pub(super) has_ended: bool,
}

/// Reads a ledger behind a record.
pub(super) fn read_pipeline(store: &Store, run: PipelineId, behind: u64) -> io::Result<ReadPipeline> {
    let opened = store.open_pipeline(run).map_err(io::Error::other)?;
    let opened = opened.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    if let Some(damage) = &opened.damage {
        return Err(io::Error::other(damage.detail.clone()));
    }
    let (state, position) = (&opened.fold, opened.fold.position());
    let (mut derived, mut reached) = (Vec::new(), behind);
    if let Some(started) = state.started.as_deref().filter(|_| behind < position.last_seq) {
        let reader = store.ledger_reader(run)?;
        let begin = reader.find(behind + 1)?;
        let mut lines = begin.map(|begin| reader.forward(begin));
        while reached < position.last_seq {
            let Some(raw) = lines.as_mut().map(|lines| lines.next()).transpose()?.flatten() else { break };
            let Some(line) = Line::parse(raw.bytes).ok().filter(|_| raw.whole) else { break };
            reached = line.seq;
            derived.extend(pipeline_notice(run, started, &line));
        }
        if reached < position.last_seq {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "its newest records are not in it yet"));
        }
    }
    let has_ended = state.status != RunStatus::Running;
    Ok(ReadPipeline { derived, seq: position.last_seq, h: position.last_hash, has_ended })
}
