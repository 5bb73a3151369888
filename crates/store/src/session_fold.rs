//! The fold of a session's log: its state and its tokens.
//!
//! Most records only move a session's position, and a few numbers take that back. The whole state is held on
//! to, and so copied by the change, only before a record that changes more, and the tokens only before one
//! about tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_domain::event::{Effect, IllegalTransition, Kind};
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Mark, Position, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;

use crate::fold::{Fold, Record};

/// A session's state and tokens. Shared with those who look: changing one copies it only while someone has it.
#[derive(Debug)]
pub struct SessionFold {
    /// Its state.
    pub state: Arc<SessionState>,
    /// Its tokens.
    pub tokens: Arc<TokenIndex>,
    revision: Revision,
}

/// A number of which there is no second one: two folds that have the same differ in nothing but what a [`Mark`] says, and in how
/// far their tokens have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Revision(u64);

impl Revision {
    fn next() -> Revision {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Revision(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl SessionFold {
    /// Returns the fold that has come to this state and these tokens.
    pub fn new(state: SessionState, tokens: TokenIndex) -> SessionFold {
        SessionFold { state: Arc::new(state), tokens: Arc::new(tokens), revision: Revision::next() }
    }
}

impl Clone for SessionFold {
    fn clone(&self) -> SessionFold {
        let SessionFold { state, tokens, revision } = self;
        SessionFold { state: state.clone(), tokens: tokens.clone(), revision: *revision }
    }

    /// Where a copy of its own lacks nothing but a position, it is moved there: what both shared would be copied whole by the next
    /// record, and most records are such.
    fn clone_from(&mut self, newer: &SessionFold) {
        let own = (self.revision == newer.revision)
            .then(|| Some((Arc::get_mut(&mut self.state)?, Arc::get_mut(&mut self.tokens)?)))
            .flatten();
        match own {
            Some((state, tokens)) => {
                state.rewind(&newer.state.mark());
                tokens.rewind(newer.tokens.position());
            }
            None => *self = newer.clone(),
        }
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
        if event.kind().map(Kind::effect) != Some(Effect::Position) {
            self.revision = Revision::next();
        }
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
            revision: self.revision,
            mark: self.state.mark(),
            tokens_at: self.tokens.position(),
            state: state.then(|| self.state.clone()),
            tokens: tokens.then(|| self.tokens.clone()),
        }
    }

    fn restore(&mut self, undo: SessionUndo) {
        self.revision = undo.revision;
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
    revision: Revision,
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

#[cfg(test)]
mod tests {
    use rekindle_domain::event::{AgentNotice, Event, Provider, SessionCreated, SessionUpdated};
    use rekindle_domain::id::SessionId;

    use super::*;

    fn apply(fold: &mut SessionFold, event: &Event<'_>) {
        let seq = fold.position().last_seq + 1;
        let ts = Timestamp::from_millis(1_000).plus_millis(i64::try_from(seq).expect("a small number"));
        fold.apply(&Record { seq, ts, at: None, source: None, event }).expect("it may follow");
        fold.set_position(Position { last_seq: seq, log_offset: 100 * seq, last_hash: None });
    }

    fn created() -> SessionFold {
        let session = SessionId::mint(1, 1);
        let mut fold = SessionFold::new(SessionState::empty(session), TokenIndex::empty(session));
        let created = SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: "/w".into(),
            provider: Provider { profile: "acp".into(), ..Provider::default() },
            options: Default::default(),
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        apply(&mut fold, &created.into());
        fold
    }

    fn notice() -> Event<'static> {
        AgentNotice { run_id: None, what: "w".into(), text: None, raw: None }.into()
    }

    fn titled(title: &'static str) -> Event<'static> {
        SessionUpdated { title: Some(title.into()), ..SessionUpdated::default() }.into()
    }

    fn same(copy: &SessionFold, fold: &SessionFold) -> bool {
        *copy.state == *fold.state && *copy.tokens == *fold.tokens
    }

    #[test]
    fn a_copy_is_what_the_fold_is_whoever_looks() {
        let mut fold = created();
        let mut copy = fold.clone();
        for (number, event) in [notice(), titled("a"), notice(), notice(), titled("b"), titled("c"), notice()]
            .iter()
            .cycle()
            .take(28)
            .enumerate()
        {
            // Every third time somebody has the copy in hand, and what they have stays as it was.
            let in_hand = (number % 3 == 0).then(|| (copy.clone(), (*copy.state).clone()));
            apply(&mut fold, event);
            copy.clone_from(&fold);
            assert!(same(&copy, &fold), "record {number}");
            assert!(in_hand.is_none_or(|(looked_at, was)| *looked_at.state == was), "record {number}");
        }
    }

    #[test]
    fn records_that_only_have_a_position_copy_nothing() {
        let mut fold = created();
        let mut copy = fold.clone();
        apply(&mut fold, &titled("a"));
        copy.clone_from(&fold);
        apply(&mut fold, &notice());
        copy.clone_from(&fold);
        let places = [Arc::as_ptr(&fold.state), Arc::as_ptr(&copy.state)];
        for _ in 0..5 {
            apply(&mut fold, &notice());
            copy.clone_from(&fold);
            assert!(same(&copy, &fold));
            assert_eq!([Arc::as_ptr(&fold.state), Arc::as_ptr(&copy.state)], places);
        }
    }

    #[test]
    fn a_record_that_was_taken_back_is_not_mistaken_for_another_in_its_place() {
        let mut fold = created();
        let mut copy = fold.clone();
        for title in ["a", "b"] {
            let refused = fold.undo(&[titled("refused").into()]);
            apply(&mut fold, &titled("refused"));
            fold.restore(refused);
            copy.clone_from(&fold);
            assert!(same(&copy, &fold));
            apply(&mut fold, &titled(title));
            copy.clone_from(&fold);
            assert!(same(&copy, &fold));
        }
    }
}
