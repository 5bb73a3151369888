//! The fold of the stream of tasks. Its state shares everything with a copy of it, so the way back is a copy.

use rekindle_domain::event::IllegalTransition;
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::Position;
use rekindle_domain::task::TasksState;

use crate::fold::{Fold, Record};

impl Fold for TasksState {
    type Undo = TasksState;

    fn stream(&self) -> StreamId {
        StreamId::tasks()
    }

    fn position(&self) -> Position {
        TasksState::position(self)
    }

    fn set_position(&mut self, position: Position) {
        TasksState::set_position(self, position);
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<(), IllegalTransition> {
        TasksState::apply(self, record.seq, record.ts, record.event)
    }

    fn undo(&self, _: &[Draft]) -> TasksState {
        self.clone()
    }

    fn restore(&mut self, undo: TasksState) {
        *self = undo;
    }
}
