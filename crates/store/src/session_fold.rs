//! The fold of a session's log: its state and its tokens.
//!
//! Most records only move a session's position, and a few numbers take that back. The whole state is held on
//! to, and so copied by the change, only before a record that changes more, and the tokens only before one
//! about tokens.

use std::sync::Arc;

use rekindle_domain::event::{Effect, IllegalTransition, Kind};
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Mark, Position, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;

use crate::fold::{Fold, Record};

/// A session's state and tokens. Shared with those who look: changing one copies it only while someone has it.
#[derive(Debug, Clone)]
pub struct SessionFold {
    /// Its state.
    pub state: Arc<SessionState>,
    /// Its tokens.
    pub tokens: Arc<TokenIndex>,
}

impl SessionFold {
    /// Returns the fold that has come to this state and these tokens.
    pub fn new(state: SessionState, tokens: TokenIndex) -> SessionFold {
        SessionFold { state: Arc::new(state), tokens: Arc::new(tokens) }
    }
}

impl Fold for SessionFold {
    type Undo = SessionUndo;

    fn stream(&self) -> StreamId {
        self.state.id.into()
    }

    fn position(&self) -> Position {
        self.state.position()
    }

    fn set_position(&mut self, position: Position) {
        Arc::make_mut(&mut self.state).set_position(position);
        Arc::make_mut(&mut self.tokens).set_position(position);
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<(), IllegalTransition> {
        let Record { seq, ts, at, source, event } = *record;
        let happened = record.happened_at();
        if event.kind().map(Kind::effect) == Some(Effect::Token) {
            Arc::make_mut(&mut self.tokens).apply(seq, happened, event)?;
        }
        let state = Arc::make_mut(&mut self.state);
        state.apply(seq, happened, event)?;
        state.note(ts, at, source);
        Ok(())
    }

    fn happened_at(&self, at: Option<Timestamp>, ts: Timestamp) -> Option<Timestamp> {
        self.state.happened_at(at, ts)
    }

    fn is_deleted(&self) -> bool {
        self.state.deleted
    }

    fn undo(&self, records: &[Draft]) -> SessionUndo {
        let (state, tokens) = reach(records);
        SessionUndo {
            mark: self.state.mark(),
            tokens_at: self.tokens.position(),
            state: state.then(|| self.state.clone()),
            tokens: tokens.then(|| self.tokens.clone()),
        }
    }

    fn restore(&mut self, undo: SessionUndo) {
        match undo.state {
            Some(before) => self.state = before,
            None => Arc::make_mut(&mut self.state).rewind(&undo.mark),
        }
        match undo.tokens {
            Some(before) => self.tokens = before,
            None => Arc::make_mut(&mut self.tokens).rewind(undo.tokens_at),
        }
    }

    /// One record about anything but tokens changes nothing when it is refused.
    fn covers(undo: &SessionUndo, records: &[Draft]) -> bool {
        let [_] = records else { return false };
        let (state, tokens) = reach(records);
        !tokens && (undo.state.is_some() || !state)
    }

    /// Between the two only positions moved, if the earlier one copied less.
    fn absorb(undo: &mut SessionUndo, later: SessionUndo) {
        if let (None, Some(mut state)) = (&undo.state, later.state) {
            Arc::make_mut(&mut state).rewind(&undo.mark);
            undo.state = Some(state);
        }
        if let (None, Some(mut tokens)) = (&undo.tokens, later.tokens) {
            Arc::make_mut(&mut tokens).rewind(undo.tokens_at);
            undo.tokens = Some(tokens);
        }
    }
}

/// What a session was.
pub struct SessionUndo {
    mark: Mark,
    tokens_at: Position,
    state: Option<Arc<SessionState>>,
    tokens: Option<Arc<TokenIndex>>,
}

/// Tells whether some records change more of a session than its position, and whether they change its tokens.
fn reach(records: &[Draft]) -> (bool, bool) {
    let effects = records.iter().map(|draft| draft.event.kind().map(Kind::effect));
    effects.fold((false, false), |(state, tokens), effect| {
        (state || effect != Some(Effect::Position), tokens || effect == Some(Effect::Token))
    })
}
