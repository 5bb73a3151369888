//! The way back: what a session was before a group, kept as cheaply as what happened to it allows.
//!
//! Most records only move a session's position, and a few numbers take that back. A copy of the whole state
//! is made only before a record that changes more, and of the tokens only before one about tokens.

use rekindle_domain::event::{Effect, Kind};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Mark, Position, SessionState};
use rekindle_domain::token::TokenIndex;

/// What a session was.
pub(super) struct Undo {
    mark: Mark,
    tokens_at: Position,
    state: Option<Box<SessionState>>,
    tokens: Option<Box<TokenIndex>>,
}

/// How much of a session some records change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) state: bool,
    pub(super) tokens: bool,
}

impl Reach {
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
    pub(super) fn new(state: &SessionState, tokens: &TokenIndex, reach: Reach) -> Undo {
        Undo {
            mark: state.mark(),
            tokens_at: tokens.position(),
            state: reach.state.then(|| Box::new(state.clone())),
            tokens: reach.tokens.then(|| Box::new(tokens.clone())),
        }
    }

    /// Tells whether the whole state is remembered.
    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Puts a session back as it was.
    pub(super) fn apply(self, state: &mut SessionState, tokens: &mut TokenIndex) {
        match self.state {
            Some(before) => *state = *before,
            None => state.rewind(&self.mark),
        }
        match self.tokens {
            Some(before) => *tokens = *before,
            None => tokens.rewind(self.tokens_at),
        }
    }

    /// Takes over what a later undo copied: between the two only positions moved, if this one copied less.
    pub(super) fn absorb(&mut self, later: Undo) {
        if let (None, Some(mut state)) = (&self.state, later.state) {
            state.rewind(&self.mark);
            self.state = Some(state);
        }
        if let (None, Some(mut tokens)) = (&self.tokens, later.tokens) {
            tokens.rewind(self.tokens_at);
            self.tokens = Some(tokens);
        }
    }
}
