//! The file of a run beside its ledger, `run.json`: its summary, derived and made again when it is deleted. Once the run has ended and
//! nobody works at it any more the file says all that lists show, and how long the ledger was then: as long as the ledger is that
//! long, nobody has to read it to know of the run.

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::summary::RunSummary;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::disk::{OpenMode, read_all, write_all_at};
use rekindle_wire::view::PipelineView;
use serde::{Deserialize, Serialize};

use super::Pipelines;

/// Largest file that is read: some hundred steps.
const MOST_BYTES: u64 = 16 << 20;

/// What the file of a run that is over says beside what is shown of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OverNote {
    /// The ledger, as the file was made of it.
    ledger: LedgerEnd,
    /// The key that the run was asked for with, as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idempotency_key: Option<String>,
}

/// Where a ledger ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LedgerEnd {
    bytes: u64,
    h: Option<ChainHash>,
}

/// A run that is over, as its file says it.
pub(super) struct OverRun {
    bytes: Vec<u8>,
    pub(super) note: OverNote,
}

/// What is written of a run that is over.
#[derive(Serialize)]
struct Over<'a> {
    #[serde(flatten)]
    view: &'a PipelineView,
    #[serde(flatten)]
    note: OverNote,
}

impl OverRun {
    /// Returns what is shown of the run.
    pub(super) fn view(&self) -> Option<PipelineView> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

impl Pipelines {
    /// Reads a run that is over without its ledger; none if it is not over, is open, or if the file is missing or of another ledger.
    pub(super) fn over(&self, id: PipelineId) -> Option<OverRun> {
        if self.store.pipeline(id).is_some() {
            return None;
        }
        let ledger = self.store.ledger_size(id).ok()??;
        let bytes = read_all(&*self.disk, &self.store.layout().run_summary(id), MOST_BYTES).ok()?;
        let note: OverNote = serde_json::from_slice(&bytes).ok()?;
        (note.ledger.bytes == ledger).then_some(OverRun { bytes, note })
    }

    /// Writes the file of a run as it stands. Without it nothing is lost: it is made again from the ledger, and so it is not waited
    /// for until it is on disk.
    pub(super) fn write_summary(&self, id: PipelineId) {
        self.write_file(id, |state| serde_json::to_vec(&RunSummary::of(state)?).ok());
    }

    /// Writes the file of a run that is over: it has ended, and nobody works at it.
    pub(super) fn write_over(&self, id: PipelineId) {
        self.write_file(id, over_bytes);
    }

    /// Writes the file of a run that was just read where there is none, or another one.
    pub(super) fn restore_file(&self, state: &PipelineState) {
        let wanted = match is_over(state) {
            true => over_bytes(state),
            false => RunSummary::of(state).and_then(|summary| serde_json::to_vec(&summary).ok()),
        };
        let there = read_all(&*self.disk, &self.store.layout().run_summary(state.id), MOST_BYTES).ok();
        if there.is_none() || there != wanted {
            self.write_file(state.id, |_| wanted);
        }
    }

    fn write_file(&self, id: PipelineId, bytes: impl FnOnce(&PipelineState) -> Option<Vec<u8>>) {
        let Some(opened) = self.store.pipeline(id).filter(|opened| opened.damage.is_none()) else { return };
        let Some(bytes) = bytes(&opened.fold) else { return };
        let path = self.store.layout().run_summary(id);
        let temporary = path.with_extension("tmp");
        let write = || {
            let file = self.disk.open(&temporary, OpenMode::Replace)?;
            write_all_at(&*file, &bytes, 0)?;
            self.disk.rename(&temporary, &path)
        };
        if let Err(error) = write() {
            tracing::debug!("{} is not written: {error}", path.display());
        }
    }
}

/// Tells whether a run has ended and nobody can be at work at it, as far as its ledger says.
pub(super) fn is_over(state: &PipelineState) -> bool {
    let is_at_work = state.current_step().is_some_and(|step| step.open_attempt().is_some());
    state.status != RunStatus::Running && !is_at_work
}

fn over_bytes(state: &PipelineState) -> Option<Vec<u8>> {
    let (view, end) = (PipelineView::of(state)?, state.position());
    let idempotency_key = state.started.as_deref().and_then(|started| started.idempotency_key.clone());
    let ledger = LedgerEnd { bytes: end.log_offset, h: end.last_hash };
    serde_json::to_vec(&Over { view: &view, note: OverNote { ledger, idempotency_key } }).ok()
}
