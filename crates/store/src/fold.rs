//! The fold of a stream: what its records amount to so far. The committer asks it whether a record may follow, and goes back
//! through it where records could not be written. Each kind of stream has one.

use rekindle_domain::event::{Event, IllegalTransition};
use rekindle_domain::id::StreamId;
use rekindle_domain::line::{Draft, Line, Source};
use rekindle_domain::session::Position;
use rekindle_domain::time::Timestamp;

/// A record on its way into a fold.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its number.
    pub seq: u64,
    /// When it was written.
    pub ts: Timestamp,
    /// When it happened, if that was another time.
    pub at: Option<Timestamp>,
    /// Where it was derived from.
    pub source: Option<Source>,
    /// What happened.
    pub event: &'a Event<'a>,
}

impl<'a> Record<'a> {
    /// Returns the record that a line of a log is.
    pub(crate) fn of(line: &Line<'_>, event: &'a Event<'a>) -> Record<'a> {
        Record { seq: line.seq, ts: line.time(), at: line.at, source: line.source, event }
    }

    /// Returns when it happened.
    pub fn happened_at(&self) -> Timestamp {
        self.at.unwrap_or(self.ts)
    }
}

/// What the records of a stream amount to. A clone is what others are given to look at, so cloning must be cheap: whatever is
/// large is shared, and copied only by a change while somebody has it.
pub trait Fold: Clone + Send + Sync + 'static {
    /// The way back to what a fold was, kept as cheaply as what happened since allows.
    type Undo: Send + 'static;

    /// Returns the stream whose records these are.
    fn stream(&self) -> StreamId;

    /// Returns how far into the log the fold has come.
    fn position(&self) -> Position;

    /// Moves the fold to a position without looking at the record there.
    fn set_position(&mut self, position: Position);

    /// Takes in one record, or says why it cannot follow what came before it. The position is moved apart from this, by
    /// [`Fold::set_position`].
    fn apply(&mut self, record: &Record<'_>) -> Result<(), IllegalTransition>;

    /// Returns when something happened that was derived from elsewhere with a time of its own and is written at `ts`; none if that
    /// is the time of writing.
    fn happened_at(&self, _at: Option<Timestamp>, _ts: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Tells whether the stream is deleted: its log may go at any time, so no checkpoint vouches for it.
    fn is_deleted(&self) -> bool {
        false
    }

    /// Remembers the fold as it is before these records.
    fn undo(&self, records: &[Draft]) -> Self::Undo;

    /// Puts the fold back as it was.
    fn restore(&mut self, undo: Self::Undo);

    /// Tells whether an earlier undo takes these records back too, and nothing is left of them when they are refused: then no
    /// other is needed.
    fn covers(_undo: &Self::Undo, _records: &[Draft]) -> bool {
        false
    }

    /// Takes over what a later undo remembers and an earlier one does not; one that remembers everything needs nothing.
    fn absorb(_undo: &mut Self::Undo, _later: Self::Undo) {}
}
