//! The file of a run beside its ledger, `run.json`: its summary, derived and made again when it is deleted. Once the run has ended and
//! nobody works at it any more the file says all that lists show, and how long the ledger was then: as long as the ledger is that
//! long, nobody has to read it to know of the run.

use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::summary::RunSummary;
use rekindle_store::disk::{OpenMode, read_all, write_all_at};
use rekindle_wire::view::PipelineView;

use super::Pipelines;
use crate::run_summary::{OverNote, is_over, over_bytes};

/// Largest file that is read: some hundred steps.
const MOST_BYTES: u64 = 16 << 20;

/// A run that is over, as its file says it.
pub(super) struct OverRun {
    bytes: Vec<u8>,
    pub(super) note: OverNote,
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
