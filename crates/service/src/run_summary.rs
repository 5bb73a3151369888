//! What is written into the file of a run beside its ledger: its summary, and once nobody works at it any more all that lists show. For
//! those who write it, and for those who look whether it is right.

use rekindle_domain::chain::ChainHash;
use rekindle_domain::pipeline::summary::RunSummary;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_wire::view::PipelineView;
use serde::{Deserialize, Serialize};

/// What the file of a run that is over says beside what is shown of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverNote {
    /// The ledger, as the file was made of it.
    pub(crate) ledger: LedgerEnd,
    /// The key that the run was asked for with, as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
}

/// Where a ledger ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LedgerEnd {
    pub(crate) bytes: u64,
    h: Option<ChainHash>,
}

/// What is written of a run that is over.
#[derive(Serialize)]
struct Over<'a> {
    #[serde(flatten)]
    view: &'a PipelineView,
    #[serde(flatten)]
    note: OverNote,
}

/// Tells whether a run has ended and nobody can be at work at it, as far as its ledger says.
pub(crate) fn is_over(state: &PipelineState) -> bool {
    let is_at_work = state.current_step().is_some_and(|step| step.open_attempt().is_some());
    state.status != RunStatus::Running && !is_at_work
}

/// Returns what the file of a run may say: its summary, and if the run has ended what is said of one that is over.
pub(crate) fn possible_files(state: &PipelineState) -> Vec<Vec<u8>> {
    let summary = RunSummary::of(state).and_then(|summary| serde_json::to_vec(&summary).ok());
    let over = if state.status == RunStatus::Running { None } else { over_bytes(state) };
    summary.into_iter().chain(over).collect()
}

/// Returns what the file says of a run that is over.
pub(crate) fn over_bytes(state: &PipelineState) -> Option<Vec<u8>> {
    let (view, end) = (PipelineView::of(state)?, state.position());
    let idempotency_key = state.started.as_deref().and_then(|started| started.idempotency_key.clone());
    let ledger = LedgerEnd { bytes: end.log_offset, h: end.last_hash };
    serde_json::to_vec(&Over { view: &view, note: OverNote { ledger, idempotency_key } }).ok()
}
