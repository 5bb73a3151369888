//! The way back: what a session was before a group, kept as cheaply as what happened to it allows.
//!
//! Most records only move a session's position, and a few numbers take that back. The whole state is held on
//! to, and so copied by the change, only before a record that changes more, and the tokens only before one
//! about tokens.

use std::sync::Arc;

use rekindle_domain::event::{Effect, Kind};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Mark, Position, SessionState};
use rekindle_domain::token::TokenIndex;

/// What a session was.
pub(super) struct Undo {
    mark: Mark,
    tokens_at: Position,
    state: Option<Arc<SessionState>>,
    tokens: Option<Arc<TokenIndex>>,
}

/// How much of a session some records change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) state: bool,
    pub(super) tokens: bool,
}

impl Reach {
    /// Everything.
    pub(super) const ALL: Reach = Reach { state: true, tokens: true };

    pub(super) fn of(records: &[Draft]) -> Reach {
        let effects = records.iter().map(|draft| draft.event.kind().map(Kind::effect));
        effects.fold(Reach { state: false, tokens: false }, |reach, effect| Reach {
            state: reach.state || effect != Some(Effect::Position),
            tokens: reach.tokens || effect == Some(Effect::Token),
        })
    }
}

impl Undo {
    /// Remembers a session before records of some reach.
    pub(super) fn new(state: &Arc<SessionState>, tokens: &Arc<TokenIndex>, reach: Reach) -> Undo {
        Undo {
            mark: state.mark(),
            tokens_at: tokens.position(),
            state: reach.state.then(|| state.clone()),
            tokens: reach.tokens.then(|| tokens.clone()),
        }
    }

    /// Tells whether the whole state is remembered.
    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Puts a session back as it was.
    pub(super) fn apply(self, state: &mut Arc<SessionState>, tokens: &mut Arc<TokenIndex>) {
        match self.state {
            Some(before) => *state = before,
            None => Arc::make_mut(state).rewind(&self.mark),
        }
        match self.tokens {
            Some(before) => *tokens = before,
            None => Arc::make_mut(tokens).rewind(self.tokens_at),
        }
    }

    /// Takes over what a later undo copied: between the two only positions moved, if this one copied less.
    pub(super) fn absorb(&mut self, later: Undo) {
        if let (None, Some(mut state)) = (&self.state, later.state) {
            Arc::make_mut(&mut state).rewind(&self.mark);
            self.state = Some(state);
        }
        if let (None, Some(mut tokens)) = (&self.tokens, later.tokens) {
            Arc::make_mut(&mut tokens).rewind(self.tokens_at);
            self.tokens = Some(tokens);
        }
    }
}
