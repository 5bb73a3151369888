//! The fold of the ledger of a pipeline run. Its state shares everything with a copy of it, so the way back is a copy.

use rekindle_domain::event::IllegalTransition;
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::session::Position;

use crate::fold::{Fold, Record};

impl Fold for PipelineState {
    type Undo = PipelineState;

    fn stream(&self) -> StreamId {
        self.id.into()
    }

    fn position(&self) -> Position {
        PipelineState::position(self)
    }

    fn set_position(&mut self, position: Position) {
        PipelineState::set_position(self, position);
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<(), IllegalTransition> {
        PipelineState::apply(self, record.ts, record.event)
    }

    fn undo(&self, _: &[Draft]) -> PipelineState {
        self.clone()
    }

    fn restore(&mut self, undo: PipelineState) {
        *self = undo;
    }
}
